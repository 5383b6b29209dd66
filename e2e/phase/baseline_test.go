package phase

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"abl/internal/state"
	"abl/internal/testing/lab"
)

// hasServer creates a project around a repository with a server, and commits its settings.
func hasServer(t *testing.T, app, files string) *lab.Project {
	t.Helper()
	p := newProject(t, "app: {"+app+"}\nsource: {repo: .}\n",
		builds(write("server.mjs", server)), verifies())
	p.Write("server.mjs", files)
	p.Git("", "init", "-q", "-b", "main")
	p.Git("", "add", "-A")
	p.Git("", "-c", "user.name=P", "-c", "user.email=p@example.com", "commit", "-qm", "as it is")
	return p
}

// If the app of an adopted repository does not start, abl reports it before it pays for a call,
// with the app's output, the likely cause and the setting to change.
func TestBaseline(t *testing.T) {
	const web = "command: node server.mjs, port: 3000, ready: {path: /, timeout: 3s}"
	for _, c := range []struct {
		name, app, server string
		says              []string // on standard error
	}{
		{
			"missing-dependency",
			web,
			"import 'express';\n",
			[]string{"Cannot find package 'express'", "a dependency is missing", "change app.prepare"},
		},
		{
			"another-port",
			web,
			strings.ReplaceAll(server, "3000", "8123"),
			[]string{"it listens on port 8123", "change app.port"},
		},
		{"loopback", web, lab.File(t, "apps/listens-on-loopback.mjs"), []string{"127.0.0.1 only", "HOST=0.0.0.0"}},
		{
			"missing-program",
			"command: deno run server.mjs, port: 3000",
			server,
			[]string{"(app.command: deno run server.mjs)", "a program is missing", "toolchain"},
		},
		{
			"prepare",
			web + ", prepare: 'echo no such package; exit 3'",
			server,
			[]string{"app.prepare ended with exit code 3", "no such package", "(app.prepare: echo"},
		},
		{
			"build",
			web + ", build: 'echo no such target; exit 2'",
			server,
			[]string{"app.build ended with exit code 2", "no such target", "change app.build"},
		},
		{
			"program",
			"kind: command, command: node nothing.mjs, probe: --version",
			server,
			[]string{"the program, run with --version, exited with code 1", "Cannot find module"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name != "missing-dependency" && c.name != "program" {
				lab.Long(t)
			}
			p := hasServer(t, c.app, c.server)
			r := p.Must(2, "phase", "1")
			wants(t, "standard error", r.Stderr, append(c.says, "the app does not start as you committed it",
				"--no-baseline", "adopt.baseline: off")...)
			if rows := ledgerRows(p); len(rows) > 0 {
				t.Errorf("got ledger %v, want no call", rows)
			}
			if c.name != "missing-dependency" {
				return
			}
			wants(t, "abl logs app", p.Must(0, "logs", "app").Stdout, "app │ ", "Cannot find package 'express'")
			wants(t, "abl doctor", p.Run("doctor").Stdout, "FAIL  baseline", "Cannot find package 'express'",
				"a dependency is missing")
			wants(t, "abl open", p.Must(2, "open").Stderr, "the app does not start as you committed it",
				"a dependency is missing")
			p.Must(0, "phase", "1", "--no-baseline")
			checkNothingLeft(p)
		})
	}
}

// The baseline runs once, and a program without app.probe may refuse --help. app.build runs once
// per commit, even if its app starts several times.
func TestBaselineRunsOnce(t *testing.T) {
	lab.Long(t)
	p := hasServer(t, "command: node dist/server.mjs, port: 3000, ready: {path: /, timeout: 20s}, build: mkdir "+
		"dist && cp server.mjs dist/", server)
	p.Write(".abl/config.yaml", strings.Replace(p.Read(".abl/config.yaml"), unproven,
		"verify: {evidence: required, strength_time: 0, allow_weak: all}\n", 1))
	p.Git("", "-c", "user.name=P", "-c", "user.email=p@example.com", "commit", "-qam", "with replays")
	wants(t, "abl doctor", p.Run("doctor").Stdout, "ok    baseline   the app starts as you committed it")
	r := p.Must(0, "phase", "1", "--json")
	if got := len(of(events(t, r), state.AppReady)); got < 2 {
		t.Errorf("got %d starts of the app, want one before the first call, and one for the Verifier", got)
	}
	wants(t, "the events", r.Stdout, "starting the app as you committed it")
	if got := len(of(events(t, r), state.Preparing)); got > 2 {
		t.Errorf("got %d runs of app.build, want one for the user's commit and one for the Builder's", got)
	}
	p.Must(0, "publish", "1")
	lacks(t, "the branch", p.Git("", "ls-tree", "-r", "--name-only", "abl/phase1"), "dist/")
	lacks(t, "doctor after a phase", p.Run("doctor").Stdout, "baseline")

	t.Run("program", func(t *testing.T) {
		lab.Long(t)
		p := hasServer(t, "kind: command, command: node server.mjs", "process.exit(2);\n")
		r := p.Run("phase", "1", "--json")
		wants(t, "the calls", called(events(t, r)), "p1-build-1.1")
	})
	checkNothingLeft(p)
}

// With the settings that abl init writes for a repository, its app starts.
func TestInitSettingsStartTheApp(t *testing.T) {
	files, err := filepath.Glob("testdata/init/*.txtar")
	if err != nil || len(files) < 8 {
		t.Fatalf("got %d repositories, %v, want 8 or more", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(name, func(t *testing.T) {
			if name != "compose" && name != "python-cli" {
				lab.Long(t)
			}
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			p := newProject(t, "")
			if err := os.RemoveAll(filepath.Join(p.Dir, ".abl")); err != nil {
				t.Fatal(err)
			}
			for _, f := range archive.Files {
				p.Write(f.Name, string(f.Data))
			}
			p.Git("", "init", "-q", "-b", "main")
			p.Git("", "add", "-A")
			p.Git("", "-c", "user.name=P", "-c", "user.email=p@example.com", "commit", "-qm", "as it was")
			p.Must(0, slices.Concat([]string{"init"},
				strings.Fields(map[string]string{"monorepo": "--dir packages/api"}[name]))...)
			wants(t, "abl doctor", p.Run("doctor").Stdout, "ok    baseline   the app starts as you committed it")
			checkNothingLeft(p)
		})
	}
}
