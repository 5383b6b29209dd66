package hostile

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"abl/internal/testing/lab"
)

// The controls show that the attacks work without a defence, so that the other tests pass because
// of the defence. Group E has its controls next to its attacks.

// Group A: a program that opens a role's file in the usual way reads the user's secret or waits
// for ever.
func TestControlOfReports(t *testing.T) {
	lab.Long(t)
	s := newScene(t, usual)
	file := filepath.Join(s.Dir, ".abl/tests/failed_specs.md")
	if err := os.Symlink("../../.env", file); err != nil {
		t.Fatal(err)
	}
	wants(t, "the link", s.Read(".abl/tests/failed_specs.md"), s.canaries.Env)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(file, 0o644); err != nil {
		t.Fatal(err)
	}
	read := make(chan string)
	go func() { data, _ := os.ReadFile(file); read <- string(data) }()
	// A writer can open a FIFO only while a reader waits.
	w, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-read:
		t.Errorf("the reader of the FIFO: got %q, want it to block", got)
	default:
	}
	fmt.Fprint(w, "later")
	w.Close()
	if got := <-read; got != "later" {
		t.Errorf("the reader got %q, want %q", got, "later")
	}
}

// Group B: a container with the engine's defaults.
func TestControlOfMounts(t *testing.T) {
	lab.Long(t)
	s := newScene(t, usual)
	link := filepath.Join(s.Dir, ".abl/tests/failed_specs.md")
	if err := os.Symlink("../../.env", link); err != nil {
		t.Fatal(err)
	}
	out := docker(t, "run", "--rm", "--label", "abl.project=test-hostile", "-v", link+":/file", s.toolsImage(),
		"cat", "/file")
	wants(t, "a link as a mount's source", out, s.canaries.Env)

	out = s.runWeakly(t, nil, lab.File(t, "controls/weak.sh"))
	for _, name := range []string{
		"mknod_char", "chroot", "raw_icmp", "packet", "setgroups", "chown", "root", "memory",
		"sched_setscheduler", "sched_setaffinity", "setpriority", "prlimit",
	} {
		wants(t, "a usual container", out, "HOLE: "+name)
	}
	info, err := os.Stat(filepath.Join(s.Dir, "src/s"))
	if err != nil || info.Mode()&os.ModeSetuid == 0 || !strings.HasPrefix(ownerOf(info), "0:") {
		t.Errorf("src/s: got %v, error %v, want a setuid shell of root", info, err)
	}
	_ = os.Remove(filepath.Join(s.Dir, "src/s"))
}

// Group C: a history that a role can write to.
func TestControlOfHistories(t *testing.T) {
	lab.Long(t)
	s := newScene(t, usual)
	s.git("src", "init", "-q")
	s.git(".abl/tests", "init", "-q")
	giveToGuest(s)
	ran := func(what string, args ...string) {
		t.Helper()
		_ = s.gitCommand("src", args...).Run()
		if err := os.Remove(filepath.Join(s.Dir, "src", evidence)); err != nil {
			t.Errorf("evidence that %s ran: got error %v, want a file", what, err)
		}
	}
	s.runWeakly(t, nil, lab.File(t, "controls/hook.sh"))
	ran("the hook", "-c", "user.name=x", "-c", "user.email=x@x", "commit", "--allow-empty", "-m", "x")
	s.runWeakly(t, nil, "git -c safe.directory='*' config core.fsmonitor 'touch "+evidence+"; false'")
	ran("the watcher", "status")
	s.runWeakly(t, nil, "rm -rf .git; echo 'gitdir: ../.abl/tests/.git' > .git")
	cmd := s.gitCommand("src", "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "--allow-empty", "-m",
		"phase1/build/step-1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got := s.git(".abl/tests", "log", "--format=%s"); got != "phase1/build/step-1" {
		t.Errorf("got last commit of the tests %q, want %q", got, "phase1/build/step-1")
	}
}

// Group D: a key in a container's environment.
func TestControlOfSecrets(t *testing.T) {
	lab.Long(t)
	s := newScene(t, usual)
	out := s.runWeakly(t, []string{"-e", "GEMINI_API_KEY=" + s.canaries.Key}, "env; tr '\\0' '\\n' < /proc/1/environ")
	if strings.Count(out, s.canaries.Key) < 2 {
		t.Errorf("the key in the environment: got %s, want it twice", out)
	}
	id := docker(t, "create", "--label", "abl.project=test-hostile", "-e", "GEMINI_API_KEY="+s.canaries.Key,
		s.toolsImage(), "true")
	t.Cleanup(func() { _ = exec.Command("docker", "rm", "-f", id).Run() })
	wants(t, "the inspection", docker(t, "inspect", id), s.canaries.Key)
}

// Group F: a command whose output the configuration shows to the Verifier.
func TestControlOfCommands(t *testing.T) {
	lab.Long(t)
	s := newScene(t, usual+nodeApp+"verifier_commands:\n  shown: {command: \"cat lib/secret.mjs\", output: shown, "+
		"description: \"prints the source\"}\n")
	s.script(builds(), verifies(run("abl-cmd shown")))
	if r := s.abl("phase", "1", "--json"); r.Code != 0 {
		t.Fatalf("got exit %d, want 0: %s", r.Code, r.Stderr)
	}
	wants(t, "the Verifier", s.Printed("p1-verify-1.1"), s.canaries.Src)
}

// Group G: a container without limits.
func TestControlOfLimits(t *testing.T) {
	lab.Long(t)
	s := newScene(t, usual)
	out := s.runWeakly(t, nil, `./attacker threads 400
dd if=/dev/zero of=/tmp/x bs=1M count=100 2>/dev/null; stat -c %s /tmp/x
python3 -c "f = [open('/dev/null') for _ in range(5000)]; print(len(f), 'open')"
python3 -c "b = bytearray(600 << 20); b[::4096] = b'x' * len(b[::4096]); print(len(b), 'bytes')"`)
	wants(t, "a container without limits", out, "processes: 400", "104857600", "5000 open", "629145600 bytes")
}

// Group T: an agent's bytes as the engine forwards them.
func TestControlOfTerminal(t *testing.T) {
	lab.Long(t)
	s := newScene(t, usual)
	for _, c := range steers {
		if out := s.runWeakly(t, nil, "printf '%b' '"+octal(c.text)+"'; echo ."); oddAt(out) < 0 && c.id != "T04" &&
			c.id != "T02-marks" {
			t.Errorf("%s: got %q, want control characters", c.id, out)
		}
	}
}

// The oracle reports each kind of damage.
func TestOracleFindsEachViolation(t *testing.T) {
	lab.Long(t)
	s := newScene(t, usual+nodeApp)
	s.script(builds(), verifies())
	r := s.play(0)
	put := func(path, text string) func() {
		return func() { s.Write(path, text); giveToGuest(s) }
	}
	harms := []struct {
		what string
		harm func()
		undo func()
		want string
	}{
		{"nothing", func() {}, nil, ""},
		{"a key in a call's record", put(".abl/logs/calls/p1-build-1.1/x", "a "+s.canaries.Key), nil, "canaryKey"},
		{"a secret in code, in a workspace", put("src/x", encodings(s.canaries.Env)[4]), nil, "canary"},
		{"the host's file in a history", func() {
			cmd := s.gitCommand("src", "hash-object", "-w", "--stdin")
			cmd.Stdin = strings.NewReader(s.canaries.Host)
			if err := cmd.Run(); err != nil {
				t.Fatal(err)
			}
			giveToGuest(s)
		}, nil, "the history of src"},
		{"a secret of abl's environment in a role's directory", put(".abl/tests/x", s.canaries.Proc), nil, "canaryProc"},
		{"source in the Verifier's record", put(".abl/logs/calls/p1-verify-1.1/x", s.canaries.Src), nil, "canarySrc"},
		{"tests in the Builder's workspace", put("src/y", s.canaries.Tests), nil, "canaryTests"},
		{"a changed spec", put(".abl/specs/phase1.md", "# Phase 1: Other\n"), nil, "specs/phase1.md"},
		{
			"a file in the user's home",
			func() { _ = os.WriteFile(filepath.Join(s.home, ".bashrc"), nil, 0o644) },
			func() { _ = os.Remove(filepath.Join(s.home, ".bashrc")) },
			".bashrc",
		},
		{
			"a setuid file",
			func() { put("src/z", "x")(); _ = os.Chmod(filepath.Join(s.Dir, "src/z"), 0o755|os.ModeSetuid) },
			nil,
			"src/z",
		},
		{
			"a device or a socket",
			func() { _ = unix.Mknod(filepath.Join(s.Dir, "src/sock"), unix.S_IFSOCK|0o644, 0); giveToGuest(s) },
			nil,
			"src/sock",
		},
		{"a commit that is not abl's", func() {
			if out, err := s.gitCommand("src", "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q",
				"--allow-empty", "-m", "mine").CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			giveToGuest(s)
		}, nil, `got commit "mine"`},
		{"a call without a row", put(".abl/logs/calls/p1-build-7.1/outcome.json", "{}"), nil, "got no row in tokens.csv"},
		{"a formula in a cell", func() {
			text := s.Read(".abl/logs/tokens.csv")
			s.Write(".abl/logs/tokens.csv", strings.Replace(text, "scripted", "=1+1", 1))
			giveToGuest(s)
		}, nil, "formula"},
		{"a damaged state", put(".abl/state.json", "{"), nil, "state.json"},
	}
	for _, h := range harms {
		t.Run(h.what, func(t *testing.T) {
			state := s.Read(".abl/state.json")
			h.harm()
			saw := s.asks(r)
			if h.undo != nil {
				h.undo()
			}
			s.Write(".abl/state.json", state)
			giveToGuest(s)
			if h.want == "" && saw != "" || !strings.Contains(saw, h.want) {
				t.Errorf("report of the oracle: got %q, want %q", saw, h.want)
			}
		})
	}
	for _, text := range []string{"\x1b[2J", "\u202e", "\x00", "\u200b", "\xff"} {
		if saw := s.asks(lab.Result{Stdout: text}); !strings.Contains(saw, "controls a terminal") {
			t.Errorf("report of the oracle for %q: got %q, want %q", text, saw, "controls a terminal")
		}
	}
}

// asks returns the oracle's report without failing the test.
func (s *scene) asks(r lab.Result) string {
	recorder := &recorder{TB: s.TB}
	other := *s
	project := *s.Project
	project.TB, other.Project = recorder, &project
	other.oracle(r)
	return recorder.failures.String()
}

// recorder is a test that records failures.
type recorder struct {
	testing.TB
	failures strings.Builder
}

func (e *recorder) Errorf(format string, args ...any) { fmt.Fprintf(&e.failures, format+"\n", args...) }
func (e *recorder) Error(args ...any)                 { fmt.Fprintln(&e.failures, args...) }
