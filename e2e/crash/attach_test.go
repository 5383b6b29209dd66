package crash

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"abl/internal/state"
	"abl/internal/testing/lab"
)

// startAtGate starts a run and waits until the role's agent is at its gate.
func startAtGate(t *testing.T, role, points string) (*scene, *running) {
	t.Helper()
	return atGate(newScene(t, map[string]string{role: gate}), role, points)
}

// startLongAtGate is like startAtGate, with a second iteration.
func startLongAtGate(t *testing.T, role string) (*scene, *running) {
	t.Helper()
	return atGate(newLong(t, map[string]string{role: gate}), role, "")
}

func atGate(s *scene, role, points string) (*scene, *running) {
	s.Helper()
	r := s.start(points)
	s.atGate(role)
	return s, r
}

// If abl is killed while an agent runs, the next run attaches to it. The containers of the agent
// and the app stay the same, and nothing starts twice.
func TestNextRunAttachesToRunningCall(t *testing.T) {
	want, _ := wantedOf(t, nightSteps())
	for role, key := range map[string]string{"builder": "p1-build-1.1", "verifier": "p1-verify-1.1"} {
		t.Run(role, func(t *testing.T) {
			if role == "builder" {
				lab.Long(t)
			}
			t.Parallel()
			s, r := atGate(sceneOf(t, nightSteps(), map[string]string{role: gate}), role, "")
			r.kill()
			var agent string
			// The engine may list a running container with a delay.
			s.until("the agent's container", func() bool { agent = s.containers("role"); return agent != "" })
			app := s.containers("app")
			r = s.start("call.ended=pause")
			s.until("the second abl", func() bool { return strings.Contains(s.Read(".abl/lock"), pid(r)) })
			if got := s.containers("role"); got != agent {
				t.Errorf("got agent container %q, want %q", got, agent)
			}
			s.open(role)
			s.atPause("call.ended")
			if got := s.containers("app"); got != app {
				t.Errorf("got app container %q, want %q", got, app)
			}
			s.release("call.ended")
			events := r.end(0)
			s.checkNothingLeft()
			if got := calls(events, state.CallResume); got != key {
				t.Errorf("resumed calls: got %q, want %q", got, key)
			}
			if got := calls(events, state.CallStart); strings.Contains(got, key) {
				t.Errorf("got repeated starts %q, want none", got)
			}
			checkSame(t, want, s.print())
		})
	}
}

// If a call ends while abl is not running, the next run uses its result.
func TestCallThatEndedWithoutAbl(t *testing.T) {
	lab.Long(t)
	want, _ := wanted(t)
	t.Parallel()
	s, r := startAtGate(t, "builder", "")
	r.kill()
	s.open("builder")
	s.until("the end of the agent", func() bool { return s.containers("role") == "" })
	s.finish()
	checkSame(t, want, s.print())
}

// abl clean stops a call. The next run finds the record of the stop and repeats the call.
func TestCallStoppedByCleanIsRepeated(t *testing.T) {
	lab.Long(t)
	t.Parallel()
	wantEngine(t)
	s, r := startAtGate(t, "builder", "")
	r.kill()
	if r := s.Must(0, "status"); !strings.Contains(r.Stdout, "paused") {
		t.Errorf("abl status: got %s, want a paused phase", r.Stdout)
	}
	s.Must(0, "clean")
	s.checkNothingLeft()
	s.open("builder")
	events := s.events(s.finish().Stdout)
	if got := calls(events, state.CallStart); !strings.HasPrefix(got+" ", "p1-build-1.2 p1-verify-1.1 ") {
		t.Errorf("started calls: got %s, want p1-build-1.2 and p1-verify-1.1 first", got)
	}
	if rows := s.Read(".abl/logs/tokens.csv"); !strings.Contains(rows, "p1-build-1.1,scripted,") ||
		!strings.Contains(rows, ",interrupted\n") {
		t.Errorf("the ledger: got\n%s\nwant p1-build-1.1 as interrupted", rows)
	}
}

// A second abl is refused while the first one runs, with the holder's name.
func TestSecondRunIsRefused(t *testing.T) {
	want, _ := wanted(t)
	t.Parallel()
	s, r := startAtGate(t, "builder", "")
	other := s.Must(11, "phase", "1", "--json")
	if !strings.Contains(other.Stderr, pid(r)) {
		t.Errorf("stderr of the second abl: got %s, want the holder's pid %s", other.Stderr, pid(r))
	}
	if last := s.events(other.Stdout); len(last) != 1 || last[0].Kind != state.Outcome || *last[0].Exit != 11 {
		t.Errorf("events of the second abl: got %s, want only an outcome with exit code 11", other.Stdout)
	}
	s.open("builder")
	r.end(0)
	checkSame(t, want, s.print())
}

// A run that is suspended and resumed misses nothing.
func TestFrozenRunMissesNothing(t *testing.T) {
	lab.Long(t)
	want, _ := wanted(t)
	t.Parallel()
	s, r := startAtGate(t, "verifier", "")
	r.signal(syscall.SIGSTOP)
	s.open("verifier")
	s.until("the end of the agent", func() bool { return s.containers("role") == "" })
	r.signal(syscall.SIGCONT)
	r.end(0)
	s.checkNothingLeft()
	checkSame(t, want, s.print())
}

// A run continues without a reader of its output.
func TestClosedOutputDoesNotStopARun(t *testing.T) {
	lab.Long(t)
	want, _ := wanted(t)
	for _, args := range []string{"phase 1 --json", "phase 1"} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, nil)
			cmd := s.command("", strings.Fields(args)...)
			pipe, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if args == "phase 1" { // plain progress goes to stderr
				pipe.Close()
				if pipe, err = cmd.StderrPipe(); err != nil {
					t.Fatal(err)
				}
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if _, err := pipe.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			pipe.Close()
			if err := cmd.Wait(); err != nil {
				t.Errorf("abl %s: got error %v, want none", args, err)
			}
			s.checkNothingLeft()
			checkSame(t, want, s.print())
		})
	}
}

// Temporary files of writes that a kill interrupted are removed.
func TestTemporaryFilesAreRemoved(t *testing.T) {
	lab.Long(t)
	want, _ := wanted(t)
	t.Parallel()
	s := newScene(t, nil)
	s.runUntilKilled("call.started=kill")
	s.Write(".abl/.state.json.abl-tmp-1", "half")
	s.finish()
	if s.exists(filepath.Join(s.Dir, ".abl/.state.json.abl-tmp-1")) {
		t.Error(".abl/.state.json.abl-tmp-1: got a file, want it removed")
	}
	checkSame(t, want, s.print())
}
