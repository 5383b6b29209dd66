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

// A signal at whatever moment: what runs is stopped, the state is saved, the
// code says which signal it was, and the next run comes to the right end. Each run of
// a project is stopped a little later than the one before.
func TestSignals(t *testing.T) {
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
			s.stopAmid(t, sig, "builder")
			if sig == syscall.SIGINT || !testing.Short() { // one is as good as another
				s.stopAt(t, sig, "app.started")
				s.stopAmid(t, sig, "verifier")
			}
			s.open("verifier")
			s.finish()
			s.passed()
		})
	}
	t.Run("in more places", func(t *testing.T) {
		lab.Long(t)
		t.Parallel()
		s := newScene(t, map[string]string{"builder": gate}) // else it may be done before it is stopped
		for _, point := range []string{"stage.reached", "stage.swept", "holder.created", "call.created", "call.started"} {
			s.stopAt(t, syscall.SIGINT, point)
		}
		s.open("builder")
		for _, point := range []string{"commit.before", "app.created", "judge.decided"} {
			s.stopAt(t, syscall.SIGINT, point)
		}
		s.finish()
		s.passed()
	})
}

// stopAt stops a run that stands at a failpoint.
func (s *scene) stopAt(t *testing.T, sig syscall.Signal, point string) {
	t.Helper()
	t.Run("at "+point, func(t *testing.T) {
		s := s.in(t)
		r := s.start(point + "=1*pause")
		s.atPause(point)
		r.signal(sig)
		s.release(point)
		s.stopped(r, sig)
	})
}

// stopAmid stops a run while the role works, and lets the role go on in the next.
func (s *scene) stopAmid(t *testing.T, sig syscall.Signal, role string) {
	t.Helper()
	t.Run("amid the "+role, func(t *testing.T) {
		s, r := atGate(s.in(t), role, "")
		r.signal(sig)
		s.stopped(r, sig)
		s.open(role)
	})
}

// stopped wants a clean end by the signal.
func (s *scene) stopped(r *running, sig syscall.Signal) {
	s.Helper()
	events := r.end(codes[sig])
	s.settled()
	last := events[len(events)-1]
	if last.Kind != state.Outcome || last.Exit == nil || *last.Exit != codes[sig] {
		s.Errorf("the last event is %+v", last)
	}
	if !strings.Contains(r.err.String(), "run the same command again") {
		s.Errorf("it says %q", r.err.String())
	}
}

// passed wants the right end, on whatever way it was reached.
func (s *scene) passed() {
	s.Helper()
	for dir, want := range map[string]string{"src": "right", ".abl/tests": "#!/bin/sh"} {
		file := map[string]string{"src": "word.txt", ".abl/tests": "run.sh"}[dir]
		if got := s.Git(dir, "show", "phase1/passed:"+file); !strings.HasPrefix(got, want) {
			s.Errorf("%s of the pass: %q", file, got)
		}
		s.Git(dir, "fsck", "--strict")
	}
	log, want := s.Git("src", "log", "--reverse", "--format=%s"), "phase1/build/step-1"
	if s.steps == 2 {
		want += "\nphase1/build/step-2"
	}
	if attempt := regexp.MustCompile(`(?m)\.\d+$`); attempt.ReplaceAllString(log, "") != want {
		s.Errorf("commits: %s", log)
	}
}

// A later SIGINT does not wait for anything; the next run cleans up.
func TestSecondInterrupt(t *testing.T) {
	wantEngine(t)
	t.Parallel()
	s, r := held(t, "builder", "call.ended=pause")
	r.signal(syscall.SIGINT)
	s.atPause("call.ended")
	ended := make(chan struct{})
	go func() { r.Wait(); close(ended) }()
	s.until("the end", func() bool {
		_ = r.Process.Signal(syscall.SIGINT) // those that come with the first are the same wish
		select {
		case <-ended:
			return true
		default:
			return false
		}
	})
	r.end(130)
	if s.Left() == "" {
		t.Error("it stayed to clean up")
	}
	s.open("builder")
	s.finish()
	s.passed()
}

// SIGINTs that come together, as from GNU timeout, are one wish: abl ends what runs
// and takes everything down.
func TestInterruptsAtOnce(t *testing.T) {
	lab.Long(t)
	wantEngine(t)
	t.Parallel()
	s, r := held(t, "builder", "")
	// So long such signals may come: the duration is what is tested.
	for begun := time.Now(); time.Since(begun) < 300*time.Millisecond; time.Sleep(20 * time.Millisecond) {
		_ = r.Process.Signal(syscall.SIGINT) // it may have ended by then
	}
	s.stopped(r, syscall.SIGINT)
	s.open("builder")
	s.finish()
	s.passed()
}

// SIGINT while the engine is away ends abl by the signal all the same. What it could
// not stop goes on, and the next run with it.
func TestInterruptedWhileTheEngineIsAway(t *testing.T) {
	lab.Long(t)
	wantEngine(t)
	for _, point := range []string{"call.created", "call.started"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			px := lab.NewProxy(t) // before the project, which is cleaned up through it
			s := newScene(t, nil)
			s.Env = append(s.Env, "DOCKER_HOST="+px.Host)
			r := s.start(point + "=1*pause")
			s.atPause(point)
			px.Refuse()
			r.signal(syscall.SIGINT)
			s.release(point)
			events := r.end(130)
			if last := events[len(events)-1]; last.Kind != state.Outcome || *last.Exit != 130 {
				t.Errorf("the last event is %+v", last)
			}
			px.Accept()
			s.finish()
			s.passed()
		})
	}
}

// Killed after it has noted why it stops a call and before it does, abl leaves
// the call running, and the next one attaches to it all the same.
func TestKilledWhileStopping(t *testing.T) {
	lab.Long(t)
	want, _ := wanted(t)
	t.Parallel()
	s, r := held(t, "builder", "call.stopping=kill")
	r.signal(syscall.SIGINT)
	r.end(-1)
	s.open("builder")
	s.finish()
	same(t, want, s.print())
}

// An abl that is told to stop before it attaches ends the call that an earlier
// one left running, and the next one knows that a person wanted that.
func TestStoppedBeforeItAttaches(t *testing.T) {
	lab.Long(t)
	wantEngine(t)
	t.Parallel()
	s, r := held(t, "builder", "")
	r.signal(syscall.SIGKILL)
	r.end(-1)
	r = s.start("stage.swept=1*pause")
	s.atPause("stage.swept")
	r.signal(syscall.SIGINT)
	s.release("stage.swept")
	s.stopped(r, syscall.SIGINT)
	s.open("builder")
	s.finish()
	s.passed()
	if rows := s.Read(".abl/logs/tokens.csv"); !strings.Contains(rows, ",interrupted\n") || strings.Contains(rows, ",lost\n") {
		t.Errorf("the ledger has\n%s", rows)
	}
}
