package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"abl/internal/testing/lab"
	"abl/internal/testing/scripttest"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"abl": main})
}

// The scripts play a user at the terminal of a machine without an engine and keys. They also use the
// commands below.
func TestScripts(t *testing.T) {
	runScripts(t, "testdata/script", func(e *testscript.Env) {
		e.Setenv("DOCKER_HOST", "unix://"+filepath.Join(e.WorkDir, "no-engine.sock"))
	})
}

// These need an engine.
func TestScriptsOnAnEngine(t *testing.T) {
	lab.Engine(t)
	helper, gateway, abl := lab.Bin(t, "abl-cmd"), lab.Bin(t, "abl-gateway"), lab.Bin(t, "abl")
	runScripts(t, "testdata/engine", func(e *testscript.Env) {
		e.Setenv("DOCKER_HOST", os.Getenv("DOCKER_HOST"))
		e.Setenv("ABL_HELPER", helper)
		e.Setenv("ABL_GATEWAY", gateway)
		e.Defer(func() { cleanAll(t, abl, e.WorkDir) })
	})
}

// cleanAll removes everything that a failed script left on the engine.
func cleanAll(t *testing.T, abl, dir string) {
	states, err := filepath.Glob(filepath.Join(dir, "*", ".abl", "state.json"))
	own, oerr := filepath.Glob(filepath.Join(dir, ".abl", "state.json"))
	if err := errors.Join(err, oerr); err != nil {
		t.Error(err)
	}
	for _, file := range append(states, own...) {
		project := filepath.Dir(filepath.Dir(file))
		if out, err := exec.Command(abl, "-C", project, "clean").CombinedOutput(); err != nil {
			t.Errorf("abl clean: %v: %s", err, out)
		}
	}
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
			"exits": scripttest.Exits, "refuses": refuses, "fits": fitsShape, "torn": torn, "rest": rest, "judged": judged,
			"number": number, "hold": hold, "unhold": unhold, "answers": answersWith, "hang": hang, "appears": appears, "give": give, "owned": owned, "dotenv": dotenv,
		},
	})
}

// refuses CODE COMMAND... is exits for invalid input: stdout is empty, stderr has one sentence and at
// most one hint, and no file in the script's directory changes.
func refuses(ts *testscript.TestScript, neg bool, args []string) {
	before := tree(ts)
	scripttest.Exits(ts, neg, args)
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

// tree returns every file of the script's directory: path, mode and content.
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
