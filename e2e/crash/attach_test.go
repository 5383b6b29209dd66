package crash

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"abl/internal/state"
	"abl/internal/testing/lab"
)

// held is a run with its agent at the gate.
func held(t *testing.T, role, points string) (*scene, *running) {
	t.Helper()
	return atGate(newScene(t, map[string]string{role: gate}), role, points)
}

// heldLong is held with a second iteration to come.
func heldLong(t *testing.T, role string) (*scene, *running) {
	t.Helper()
	return atGate(newLong(t, map[string]string{role: gate}), role, "")
}

func atGate(s *scene, role, points string) (*scene, *running) {
	s.Helper()
	r := s.start(points)
	s.atGate(role)
	return s, r
}

// An agent that runs while abl is killed is attached to: it and the app are the
// same containers, and nothing is started twice.
func TestRunningCallIsAttachedTo(t *testing.T) {
	want, _ := wantedOf(t, nightSteps())
	for role, key := range map[string]string{"builder": "p1-build-1.1", "verifier": "p1-verify-1.1"} {
		t.Run(role, func(t *testing.T) {
			if role == "builder" {
				lab.Long(t)
			}
			t.Parallel()
			s, r := atGate(sceneOf(t, nightSteps(), map[string]string{role: gate}), role, "")
			r.signal(syscall.SIGKILL)
			r.end(-1)
			var agent string
			s.until("the agent's container", func() bool { agent = s.boxes("role"); return agent != "" }) // the engine lists it a little later than it runs
			app := s.boxes("app")
			r = s.start("call.ended=pause")
			s.until("the second abl", func() bool { return strings.Contains(s.Read(".abl/lock"), pid(r)) })
			if got := s.boxes("role"); got != agent {
				t.Errorf("the agent is %q, was %q", got, agent)
			}
			s.open(role)
			s.atPause("call.ended")
			if got := s.boxes("app"); got != app {
				t.Errorf("the app is %q, was %q", got, app)
			}
			s.release("call.ended")
			events := r.end(0)
			s.settled()
			if got := calls(events, state.CallResume); got != key {
				t.Errorf("attached to %q, want %q", got, key)
			}
			if got := calls(events, state.CallStart); strings.Contains(got, key) {
				t.Errorf("started again: %q", got)
			}
			same(t, want, s.print())
		})
	}
}

// A call that ended while no abl was there is taken up from what it left.
func TestCallThatEndedAlone(t *testing.T) {
	lab.Long(t)
	want, _ := wanted(t)
	t.Parallel()
	s, r := held(t, "builder", "")
	r.signal(syscall.SIGKILL)
	r.end(-1)
	s.open("builder")
	s.until("the end of the agent", func() bool { return s.boxes("role") == "" })
	s.finish()
	same(t, want, s.print())
}

// abl clean ends a call for good; the next run knows that nobody else did, and
// begins it anew.
func TestCleanBetween(t *testing.T) {
	lab.Long(t)
	t.Parallel()
	wantEngine(t)
	s, r := held(t, "builder", "")
	r.signal(syscall.SIGKILL)
	r.end(-1)
	if r := s.Must(0, "status"); !strings.Contains(r.Stdout, "building") {
		t.Errorf("status: %s", r.Stdout)
	}
	s.Must(0, "clean")
	s.settled()
	s.open("builder")
	events := s.events(s.finish().Stdout)
	if got := calls(events, state.CallStart); !strings.HasPrefix(got+" ", "p1-build-1.2 p1-verify-1.1 ") {
		t.Errorf("calls: %s", got)
	}
	if rows := s.Read(".abl/logs/tokens.csv"); !strings.Contains(rows, "p1-build-1.1,scripted,") || !strings.Contains(rows, ",interrupted\n") {
		t.Errorf("the stopped call is not in the ledger:\n%s", rows)
	}
}

// A second abl is turned away by name while the first one works.
func TestTwoAtOnce(t *testing.T) {
	want, _ := wanted(t)
	t.Parallel()
	s, r := held(t, "builder", "")
	other := s.Must(11, "phase", "1", "--json")
	if !strings.Contains(other.Stderr, pid(r)) {
		t.Errorf("the holder is not named: %s", other.Stderr)
	}
	if last := s.events(other.Stdout); len(last) != 1 || last[0].Kind != state.Outcome || *last[0].Exit != 11 {
		t.Errorf("events: %s", other.Stdout)
	}
	s.open("builder")
	r.end(0)
	same(t, want, s.print())
}

// A frozen abl misses nothing.
func TestFrozen(t *testing.T) {
	want, _ := wanted(t)
	t.Parallel()
	s, r := held(t, "verifier", "")
	r.signal(syscall.SIGSTOP)
	s.open("verifier")
	s.until("the end of the agent", func() bool { return s.boxes("role") == "" })
	r.signal(syscall.SIGCONT)
	r.end(0)
	s.settled()
	same(t, want, s.print())
}

// Nobody has to read what abl prints.
func TestReaderGone(t *testing.T) {
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
			if args == "phase 1" { // plain progress is on the other stream
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
				t.Errorf("it ended with %v", err)
			}
			s.settled()
			same(t, want, s.print())
		})
	}
}

// A file of the record that a kill left half-written is swept.
func TestLeftoversOfWrites(t *testing.T) {
	lab.Long(t)
	want, _ := wanted(t)
	t.Parallel()
	s := newScene(t, nil)
	s.die("call.started=kill")
	s.Write(".abl/.state.json.abl-tmp-1", "half")
	s.finish()
	if s.exists(filepath.Join(s.Dir, ".abl/.state.json.abl-tmp-1")) {
		t.Error("a temporary file is left")
	}
	same(t, want, s.print())
}
