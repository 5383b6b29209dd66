package phase

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"abl/internal/testing/lab"
	"abl/roles/agent"
)

// otherRepo is a repository that is not a web server in Node.js.
type otherRepo struct {
	name     string   // of its archive, movein-NAME.txtar
	init     []string // arguments of abl init
	wants    []string // in the settings that abl init writes
	contract string
	changed  string // the file that the Builder changes
	soak     bool   // its images are large
}

var otherRepos = []otherRepo{
	{
		name:     "tally",
		init:     []string{"--kind", "command"},
		wants:    []string{"source: {repo: .}", "kind: command", `command: PYTHONPATH="$ABL_SRC" python3 -m tally`},
		contract: "`tally` with the lines a, b on standard input → prints 2",
		changed:  "tally/main.py",
	},
	{
		name:     "monorepo",
		init:     []string{"--dir", "services/api"},
		wants:    []string{"source: {repo: ., dir: services/api}", "command: ./app.bin", "build: go build -o app.bin .", `toolchain: {go: "1.26"}`},
		contract: "GET / → 200 with the text ok",
		changed:  "services/api/api.go",
		soak:     true,
	},
}

// parts returns the files of the repository, and the steps of both roles.
func (o otherRepo) parts(t *testing.T) (files map[string]string, builder, verifier []agent.Step) {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/movein-" + o.name + ".txtar")
	if err != nil {
		t.Fatal(err)
	}
	files = map[string]string{}
	for _, f := range archive.Files {
		role, name, _ := strings.Cut(f.Name, "/")
		switch {
		case f.Name == "builder/check.sh":
			builder = append(builder, must(0, string(f.Data)))
		case role == "builder":
			builder = append(builder, write(name, string(f.Data)))
		case role == "verifier":
			verifier = append(verifier, write(name, string(f.Data), "0755"))
		default:
			files[f.Name] = string(f.Data)
		}
	}
	return files, builder, verifier
}

// abl init recognizes repositories that are not a web server in Node.js. A phase runs on each,
// and its published result reaches a colleague's clone.
func TestMoveInOthers(t *testing.T) {
	lab.Long(t)
	for _, o := range otherRepos {
		t.Run(o.name, func(t *testing.T) {
			if o.soak && os.Getenv("ABL_SOAK") == "" {
				t.Skip("only with ABL_SOAK")
			}
			playOtherRepo(t, o)
		})
	}
}

func playOtherRepo(t *testing.T, o otherRepo) {
	t.Helper()
	files, builder, verifier := o.parts(t)
	p := newProject(t, "", builds(builder...), verifies(verifier...))
	play := p.Read(".abl/scenario.yaml")
	if err := os.RemoveAll(filepath.Join(p.Dir, ".abl")); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		p.Write(name, text)
	}
	p.Git("", "init", "-q", "-b", "main")
	commit := func(subject string) {
		p.Git("", "add", "-A")
		p.Git("", "-c", "user.name=P", "-c", "user.email=p@example.com", "commit", "-qm", subject)
	}
	commit("as it was")
	p.Must(0, append([]string{"init"}, o.init...)...)
	settings := p.Read(".abl/config.yaml")
	wants(t, "the settings", settings, o.wants...)
	settings = strings.NewReplacer(
		"\nagent: gemini", "\nagent: scripted\nagents: {scripted: {scenario: .abl/scenario.yaml}}",
	).Replace(settings)
	p.Write(".abl/config.yaml", settings+"verify: {strength_time: 0}\n")
	p.Write(".abl/scenario.yaml", play)
	p.Write(".abl/specs/phase1.md", strings.Replace(oneSpec, "GET / → 200 with the text ok", o.contract, 1))
	commit("abl")
	p.Must(0, "phase", "1")
	p.Must(0, "publish")
	if got := p.Git("", "diff", "--name-only", "main...abl/phase1"); got != o.changed {
		t.Errorf("files that the Builder changed: got %q, want %q", got, o.changed)
	}
	origin := filepath.Join(t.TempDir(), "origin.git")
	p.Git("", "clone", "-q", "--mirror", p.Dir, origin)
	r := cloneOf(p, origin).Must(0, "status")
	wants(t, "the colleague", r.Stdout+r.Stderr, "restored: phase 1 passed")
	checkNothingLeft(p)
}
