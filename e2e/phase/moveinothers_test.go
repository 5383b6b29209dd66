package phase

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"abl/internal/testing/lab"
)

// TestMoveInOthers: repositories that are no web server in Node.js, as abl init finds them:
// a phase, published, and what it came to in a colleague's clone.
func TestMoveInOthers(t *testing.T) {
	lab.Long(t)
	for _, c := range []struct {
		name, dir string
		files     map[string]string
		init      []string
		wants     []string // in the settings that it writes
		contract  string
		builder   string // the file that the Builder changes
		text      string
		tries     string // and how it tries that
		test      string // succeeds when the contract is kept
		soak      bool   // its images are large
	}{{
		name: "a command-line program in Python",
		files: map[string]string{
			"pyproject.toml":    "[project]\nname = \"tally\"\nversion = \"1\"\n[project.scripts]\ntally = \"tally.main:main\"\n",
			"tally/__init__.py": "",
			"tally/__main__.py": "from .main import main\nmain()\n",
			"tally/main.py":     "def main():\n    raise SystemExit('not yet')\n",
		},
		init:     []string{"--kind", "command"},
		wants:    []string{"source: {repo: .}", "kind: command", `command: PYTHONPATH="$ABL_SRC" python3 -m app`},
		contract: "`tally` with the lines a, b on standard input → prints 2",
		builder:  "tally/main.py", text: "import sys\n\n\ndef main():\n    print(len(sys.stdin.readlines()))\n",
		tries: `test "$(printf 'a\nb\n' | abl-cmd app)" = 2 && git log --format=%s | grep -qx 'as it was'`,
		test:  `test "$(printf 'a\nb\n' | timeout 20 abl-cmd app)" = 2`,
	}, {
		name: "a folder of a monorepo, in Go", dir: "services/api", soak: true,
		files: map[string]string{
			"README.md":            "All of our services.\n",
			"services/api/go.mod":  "module example.com/api\n\ngo 1.26\n",
			"services/api/main.go": "package main\n\nimport \"net/http\"\n\nfunc main() { _ = http.ListenAndServe(\":3000\", handler()) }\n",
			"services/api/api.go":  "package main\n\nimport \"net/http\"\n\nfunc handler() http.Handler { return http.NotFoundHandler() }\n",
		},
		init:     []string{"--dir", "services/api"},
		wants:    []string{"source: {repo: ., dir: services/api}", "command: go run .", `toolchain: {go: "1.26"}`},
		contract: "GET / → 200 with the text ok",
		builder:  "api.go", text: "package main\n\nimport \"net/http\"\n\nfunc handler() http.Handler {\n" +
			"\treturn http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(\"ok\")) })\n}\n",
		tries: "go vet . && test -f ../../README.md",
		test:  `curl -sf "$ABL_APP_URL/" | grep -qx ok`,
	}} {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			if c.soak && os.Getenv("ABL_SOAK") == "" {
				t.Skip("only with ABL_SOAK")
			}
			suite := "#!/bin/sh\necho 1..1\nif " + c.test + "; then echo 'ok 1 - P1.C1'; else echo 'not ok 1 - P1.C1'; fi\n"
			p := newProject(t, "", builds(write(c.builder, c.text), must(0, c.tries)), verifies(write("run.sh", suite, "0755")))
			play := p.Read(".abl/scenario.yaml")
			if err := os.RemoveAll(filepath.Join(p.Dir, ".abl")); err != nil {
				t.Fatal(err)
			}
			for name, text := range c.files {
				p.Write(name, text)
			}
			p.Git("", "init", "-q", "-b", "main")
			commit := func(subject string) {
				p.Git("", "add", "-A")
				p.Git("", "-c", "user.name=P", "-c", "user.email=p@example.com", "commit", "-qm", subject)
			}
			commit("as it was")
			p.Must(0, append([]string{"init"}, c.init...)...)
			settings := p.Read(".abl/config.yaml")
			wants(t, "the settings", settings, c.wants...)
			settings = strings.NewReplacer("\nagent: gemini", "\nagent: scripted\nagents: {scripted: {scenario: .abl/scenario.yaml}}",
				"-m app", "-m tally", "/health", "/").Replace(settings)
			p.Write(".abl/config.yaml", settings+"verify: {strength_time: 0}\n")
			p.Write(".abl/scenario.yaml", play)
			p.Write(".abl/specs/phase1.md", strings.Replace(oneSpec, "GET / → 200 with the text ok", c.contract, 1))
			commit("abl")
			p.Must(0, "phase", "1")
			p.Must(0, "publish")
			if got := p.Git("", "diff", "--name-only", "main...abl/phase1"); got != filepath.Join(c.dir, c.builder) {
				t.Errorf("the Builder changed %q, want %s alone", got, filepath.Join(c.dir, c.builder))
			}
			origin := filepath.Join(t.TempDir(), "origin.git")
			p.Git("", "clone", "-q", "--mirror", p.Dir, origin)
			r := elsewhere(p, origin).Must(0, "status")
			wants(t, "the colleague", r.Stdout+r.Stderr, "restored: phase 1 passed")
			noLeftovers(p)
		})
	}
}
