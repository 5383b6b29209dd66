package crash

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"abl/internal/git"
	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/internal/testing/lab"
	"abl/internal/testing/play"
)

// The lock file is deleted while abl holds it, which lets a second abl start. The first one does
// nothing more. The second one reaches the correct end: each call is paid for once, and the first
// abl removes nothing of the second.
func TestLockFileDeleted(t *testing.T) {
	lab.Long(t)
	wantEngine(t)
	s, first := startLongAtGate(t, "builder")
	if err := os.Remove(filepath.Join(s.Dir, ".abl/lock")); err != nil {
		t.Fatal(err)
	}
	second := s.start("call.ended=pause")
	s.until("the second abl", func() bool { return strings.Contains(s.Read(".abl/lock"), pid(second)) })
	s.open("builder")
	s.atPause("call.ended")
	all := first.end(9)
	if !strings.Contains(first.err.String(), `.abl/lock" was removed or replaced`) {
		t.Errorf("stderr of the first abl: got %q, want a message that .abl/lock was replaced", first.err.String())
	}
	if ended := calls(all, state.CallEnd) + calls(all, state.Commit); ended != "" {
		t.Errorf("the first abl continued: got %s, want nothing", ended)
	}
	s.release("call.ended")
	if got := calls(second.end(0), state.CallEnd); !strings.HasPrefix(got, "p1-build-1.1 p1-verify-1.1 ") {
		t.Errorf("ended calls of the second abl: got %s, want p1-build-1.1 and p1-verify-1.1 first", got)
	}
	s.checkNothingLeft()
	s.checkPassed()
}

// The git folder is moved away during a phase. The current run and the next one report it, and
// abl does not create another history in its place.
func TestHistoryMovedAway(t *testing.T) {
	for name, when := range map[string]func(p *play.Plant, leave func()) state.Sink{
		"while a call runs": func(p *play.Plant, leave func()) state.Sink {
			p.Worked = func(b sandbox.ContainerConfig) {
				if b.Labels[sandbox.LabelCall] == "p1-build-2.1" {
					leave()
				}
			}
			return state.Discard
		},
		"between two iterations": func(_ *play.Plant, leave func()) state.Sink {
			return state.Func(func(e state.Event) {
				if e.Kind == state.Verdict {
					leave()
				}
			})
		},
	} {
		for _, dir := range []string{"src", ".abl/tests"} {
			t.Run(name+" from "+dir, func(t *testing.T) {
				t.Parallel()
				p := play.NewPlant(t)
				dotgit, away := filepath.Join(p.Dir, dir, ".git"), p.Dir+"-git" // on one file system
				moved := false
				sink := when(p, func() {
					if !moved {
						moved = true
						if err := os.Rename(dotgit, away); err != nil {
							t.Error(err)
						}
					}
				})
				phase := play.Phase{Root: p.Dir, Engine: p.Engine, Out: sink}
				for range 2 {
					if _, err := phase.Play(t.Context()); !errors.Is(err, git.ErrForeign) || !strings.Contains(err.Error(), "is missing: restore it") {
						t.Errorf("error of the phase: got %v, want %v with %q", err, git.ErrForeign,
							"is missing: restore it")
					}
				}
				if _, err := os.Lstat(dotgit); err == nil {
					t.Errorf("%s: got another history, want none", dotgit)
				}
				if err := os.Rename(away, dotgit); err != nil {
					t.Fatal(err)
				}
				if r, err := phase.Play(t.Context()); err != nil || r.Status != state.Passed {
					t.Fatalf("after moving it back: got status %s, error %v, want %s", r.Status, err, state.Passed)
				}
			})
		}
	}
}
