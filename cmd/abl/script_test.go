package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"abl/e2e/lab"
	"abl/internal/filelock"
	"abl/orchestrator/project"
	"abl/orchestrator/spec"
	"abl/orchestrator/state"
	"abl/orchestrator/verdict"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"abl": main})
}

// The scripts are a person at a terminal of a machine without an engine and
// without keys. Beside testscript's own commands they have those below.
func TestScripts(t *testing.T) {
	runScripts(t, "testdata/script", func(e *testscript.Env) {
		e.Setenv("DOCKER_HOST", "unix://"+filepath.Join(e.WorkDir, "no-engine.sock"))
	})
}

// These need an engine.
func TestScriptsOnAnEngine(t *testing.T) {
	lab.Engine(t)
	helper := lab.Bin(t, "abl-cmd")
	runScripts(t, "testdata/engine", func(e *testscript.Env) {
		e.Setenv("DOCKER_HOST", os.Getenv("DOCKER_HOST"))
		e.Setenv("ABL_HELPER", helper)
	})
}

func runScripts(t *testing.T, dir string, setup func(*testscript.Env)) {
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			setup(e)
			samples, err := filepath.Abs("../../roles/agent/testdata/gemini")
			if err != nil {
				return err
			}
			e.Setenv("SAMPLES", samples)
			e.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
			e.Setenv("GIT_CONFIG_NOSYSTEM", "1")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "refuses": refuses, "fits": fitsShape, "torn": torn, "rest": rest,
			"hold": hold, "give": give, "owned": owned,
		},
	})
}

// exits CODE COMMAND... runs a command that must end with this exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var ended *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &ended) {
		got = ended.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("%s: exit code %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}

// refuses CODE COMMAND... is exits for bad input: nothing on stdout, one
// sentence and at most one hint on stderr, and no file in the script's directory
// changed.
func refuses(ts *testscript.TestScript, neg bool, args []string) {
	before := tree(ts)
	exits(ts, neg, args)
	if out := ts.ReadFile("stdout"); out != "" {
		ts.Fatalf("stdout: %s", out)
	}
	lines := strings.Split(strings.TrimSuffix(ts.ReadFile("stderr"), "\n"), "\n")
	for i, prefix := range []string{"abl: ", "abl: hint: "}[:max(1, min(len(lines), 2))] {
		if !strings.HasPrefix(lines[i], prefix) {
			ts.Fatalf("line %d of stderr does not begin with %q: %q", i+1, prefix, lines[i])
		}
	}
	if len(lines) > 2 {
		ts.Fatalf("stderr has %d lines, want a sentence and a hint", len(lines))
	}
	if after := tree(ts); after != before {
		ts.Fatalf("files changed, from\n%s\nto\n%s", before, after)
	}
}

// tree is every file of the script's directory: path, mode and content.
func tree(ts *testscript.TestScript) string {
	var all strings.Builder
	top := ts.Getenv("WORK")
	ts.Check(filepath.WalkDir(top, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil || path == filepath.Join(top, ".tmp") {
			return err
		}
		all.WriteString(info.Mode().String() + " " + strings.TrimPrefix(path, top) + " ")
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			all.WriteString(strconv.Quote(string(data)))
		}
		all.WriteString("\n")
		return nil
	}))
	return all.String()
}

// hold FILE holds a lock, as another abl does, to the end of the script.
func hold(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: hold FILE")
	}
	unlock, err := filelock.Lock(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Defer(func() { ts.Check(unlock()) })
}

// rest PHASE STATUS lets a phase of the project in the current directory come
// to rest, on the spec that it has now.
func rest(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: rest PHASE STATUS")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	p := project.New(ts.MkAbs("."), "src", ".abl/tests")
	f, err := state.Load(p.State())
	if errors.Is(err, os.ErrNotExist) {
		f, err = state.New(p.Root), nil
	}
	ts.Check(err)
	specs, _ := spec.LoadDir(p.Specs())
	this, _ := specs.Phase(n)
	ph := &state.Phase{Status: state.Status(args[1]), Round: 1, Iteration: 5, Step: 5, Attempt: 1, SpecSHA: this.SHA256, SpecSize: len(this.Text)}
	if ph.Status == state.Stuck {
		ph.LastVerdict = "fail"
		ph.Failed = []verdict.Entry{{Spec: "GET / → 200", Input: "GET /", Observed: "500"}}
	}
	f.Phases[args[0]] = ph
	ts.Check(state.Save(p.State(), f))
}

// torn FILE cuts off the last line's end, as a crash in the middle of a write does.
func torn(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: torn FILE")
	}
	path := ts.MkAbs(args[0])
	data, err := os.ReadFile(path)
	ts.Check(err)
	ts.Check(os.Truncate(path, int64(len(data)-1)))
}

// aPerson is somebody who is not root.
const aPerson = 4711

// give DIR makes a directory another person's than root's; whoever is not root
// keeps it.
func give(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: give DIR")
	}
	if os.Geteuid() == 0 {
		ts.Check(os.Chown(ts.MkAbs(args[0]), aPerson, aPerson))
	}
}

// owned DIR checks that all in a directory is its owner's.
func owned(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: owned DIR")
	}
	want := uint32(os.Geteuid())
	if want == 0 {
		want = aPerson
	}
	ts.Check(filepath.WalkDir(ts.MkAbs(args[0]), func(path string, d os.DirEntry, err error) error {
		var st unix.Stat_t
		if err := errors.Join(err, unix.Lstat(path, &st)); err != nil {
			return err
		}
		if st.Uid != want {
			ts.Fatalf("%s belongs to %d, not to %d", path, st.Uid, want)
		}
		return nil
	}))
}
