package crash

import (
	"fmt"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"abl/internal/state"
	"abl/internal/testing/lab"
)

func wantEngine(t *testing.T) {
	t.Helper()
	lab.Engine(t)
}

func pid(r *running) string { return fmt.Sprint(r.Process.Pid) }

var codes = map[syscall.Signal]int{syscall.SIGHUP: 129, syscall.SIGINT: 130, syscall.SIGTERM: 143}

// A signal at any moment stops the running call and saves the state. The exit code names the
// signal, and the next run reaches the correct end. Each run of a project is stopped a little
// later than the one before.
func TestSignalStopsARun(t *testing.T) {
	wantEngine(t)
	for sig := range codes {
		t.Run(fmt.Sprint(sig), func(t *testing.T) {
			if sig != syscall.SIGINT {
				lab.Long(t)
			}
			t.Parallel()
			steps := shortSteps()
			if sig == syscall.SIGINT {
				steps = nightSteps()
			}
			s := sceneOf(t, steps, map[string]string{"builder": gate, "verifier": gate})
			s.stopDuring(t, sig, "builder")
			if sig == syscall.SIGINT || !testing.Short() { // the signals are equivalent
				s.stopAt(t, sig, "app.started")
				s.stopDuring(t, sig, "verifier")
			}
			s.open("verifier")
			s.finish()
			s.checkPassed()
		})
	}
	t.Run("in more places", func(t *testing.T) {
		lab.Long(t)
		t.Parallel()
		s := newScene(t, map[string]string{"builder": gate}) // without a gate it may finish before it is stopped
		for _, point := range []string{"stage.reached", "stage.swept", "holder.created", "call.created", "call.started"} {
			s.stopAt(t, syscall.SIGINT, point)
		}
		s.open("builder")
		for _, point := range []string{"commit.before", "app.created", "judge.decided"} {
			s.stopAt(t, syscall.SIGINT, point)
		}
		s.finish()
		s.checkPassed()
	})
}

// stopAt stops a run that is paused at a failpoint.
func (s *scene) stopAt(t *testing.T, sig syscall.Signal, point string) {
	t.Helper()
	t.Run("at "+point, func(t *testing.T) {
		s := s.in(t)
		r := s.start(point + "=1*pause")
		s.atPause(point)
		r.signal(sig)
		s.release(point)
		s.checkStopped(r, sig)
	})
}

// stopDuring stops a run while the role works. In the next run the role may finish.
func (s *scene) stopDuring(t *testing.T, sig syscall.Signal, role string) {
	t.Helper()
	t.Run("during the "+role, func(t *testing.T) {
		s, r := atGate(s.in(t), role, "")
		r.signal(sig)
		s.checkStopped(r, sig)
		s.open(role)
	})
}

// checkStopped checks that the run ended cleanly by the signal.
func (s *scene) checkStopped(r *running, sig syscall.Signal) {
	s.Helper()
	events := r.end(codes[sig])
	s.checkNothingLeft()
	last := events[len(events)-1]
	if last.Kind != state.Outcome || last.Exit == nil || *last.Exit != codes[sig] {
		s.Errorf("last event: got %+v, want an outcome with exit code %d", last, codes[sig])
	}
	if !strings.Contains(r.err.String(), "run the same command again") {
		s.Errorf("stderr: got %q, want one with %q", r.err.String(), "run the same command again")
	}
}

// checkPassed checks the correct end, independent of the way to it.
func (s *scene) checkPassed() {
	s.Helper()
	for dir, want := range map[string]string{"src": "right", ".abl/tests": "#!/bin/sh"} {
		file := map[string]string{"src": "word.txt", ".abl/tests": "run.sh"}[dir]
		if got := s.Git(dir, "show", "phase1/passed:"+file); !strings.HasPrefix(got, want) {
			s.Errorf("%s of the pass: got %q, want it to begin with %q", file, got, want)
		}
		s.Git(dir, "fsck", "--strict")
	}
	log, want := s.Git("src", "log", "--reverse", "--format=%s"), "phase1/build/step-1"
	if s.steps == 2 {
		want += "\nphase1/build/step-2"
	}
	if attempt := regexp.MustCompile(`(?m)\.\d+$`); attempt.ReplaceAllString(log, "") != want {
		s.Errorf("commits of src: got %q, want %q, with or without attempts", log, want)
	}
}

// A later SIGINT ends abl immediately, and the next run cleans up.
func TestSecondInterrupt(t *testing.T) {
	lab.Long(t)
	wantEngine(t)
	t.Parallel()
	s, r := startAtGate(t, "builder", "call.ended=pause")
	r.signal(syscall.SIGINT)
	s.atPause("call.ended")
	ended := make(chan struct{})
	go func() { r.Wait(); close(ended) }()
	s.until("the end", func() bool {
		_ = r.Process.Signal(syscall.SIGINT) // signals that arrive with the first one count as one
		select {
		case <-ended:
			return true
		default:
			return false
		}
	})
	r.end(130)
	if s.Left() == "" {
		t.Error("left on the engine after the second signal: got nothing, want the call")
	}
	s.open("builder")
	s.finish()
	s.checkPassed()
}

// SIGINTs that arrive together, as from GNU timeout, count as one: abl stops what runs and
// removes everything.
func TestSimultaneousInterrupts(t *testing.T) {
	lab.Long(t)
	wantEngine(t)
	t.Parallel()
	s, r := startAtGate(t, "builder", "")
	// The duration is under test: signals may arrive together for this long.
	for begun := time.Now(); time.Since(begun) < 300*time.Millisecond; time.Sleep(20 * time.Millisecond) {
		_ = r.Process.Signal(syscall.SIGINT) // abl may have ended by then
	}
	s.checkStopped(r, syscall.SIGINT)
	s.open("builder")
	s.finish()
	s.checkPassed()
}

// SIGINT ends abl even if the engine does not respond. The call that it could not stop continues,
// and the next run attaches to it.
func TestInterruptedWithoutEngine(t *testing.T) {
	lab.Long(t)
	wantEngine(t)
	for _, point := range []string{"call.created", "call.started"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			px := lab.NewProxy(t) // created before the project, whose cleanup uses it
			s := newScene(t, nil)
			s.Env = append(s.Env, "DOCKER_HOST="+px.Host)
			r := s.start(point + "=1*pause")
			s.atPause(point)
			px.Refuse()
			r.signal(syscall.SIGINT)
			s.release(point)
			events := r.end(130)
			if last := events[len(events)-1]; last.Kind != state.Outcome || *last.Exit != 130 {
				t.Errorf("last event: got %+v, want an outcome with exit code 130", last)
			}
			px.Accept()
			s.finish()
			s.checkPassed()
		})
	}
}

// Killed after it has recorded why it stops a call, but before it stops the call, abl leaves the
// call running. The next run attaches to it.
func TestKilledWhileStopping(t *testing.T) {
	lab.Long(t)
	want, _ := wanted(t)
	t.Parallel()
	s, r := startAtGate(t, "builder", "call.stopping=kill")
	r.signal(syscall.SIGINT)
	r.end(-1)
	s.open("builder")
	s.finish()
	checkSame(t, want, s.print())
}

// If abl is stopped before it attaches to a running call, it ends that call. The next run knows
// that the user requested this.
func TestStoppedBeforeItAttaches(t *testing.T) {
	lab.Long(t)
	wantEngine(t)
	t.Parallel()
	s, r := startAtGate(t, "builder", "")
	r.kill()
	r = s.start("stage.swept=1*pause")
	s.atPause("stage.swept")
	r.signal(syscall.SIGINT)
	s.release("stage.swept")
	s.checkStopped(r, syscall.SIGINT)
	s.open("builder")
	s.finish()
	s.checkPassed()
	if rows := s.Read(".abl/logs/tokens.csv"); !strings.Contains(rows, ",interrupted\n") ||
		strings.Contains(rows, ",lost\n") {
		t.Errorf("the ledger: got\n%s\nwant an interrupted call and no lost one", rows)
	}
}
