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

// The lock's file is deleted under its holder, which lets a second abl in: the
// first does nothing more, and the second comes to the right end, with each call
// paid once and nothing of its taken down.
func TestLockTakenAway(t *testing.T) {
	lab.Long(t)
	wantEngine(t)
	s, first := heldLong(t, "builder")
	if err := os.Remove(filepath.Join(s.Dir, ".abl/lock")); err != nil {
		t.Fatal(err)
	}
	second := s.start("call.ended=pause")
	s.until("the second abl", func() bool { return strings.Contains(s.Read(".abl/lock"), pid(second)) })
	s.open("builder")
	s.atPause("call.ended")
	all := first.end(9)
	if !strings.Contains(first.err.String(), `.abl/lock" was removed or replaced`) {
		t.Errorf("it says %q", first.err.String())
	}
	if ended := calls(all, state.CallEnd) + calls(all, state.Commit); ended != "" {
		t.Errorf("the first went on to %s", ended)
	}
	s.release("call.ended")
	if got := calls(second.end(0), state.CallEnd); !strings.HasPrefix(got, "p1-build-1.1 p1-verify-1.1 ") {
		t.Errorf("the second saw the end of %s", got)
	}
	s.settled()
	s.passed()
}

// The history is moved away in the middle of a phase: that is said, by the run that
// works on it and by the next, and no other history begins in its place.
func TestHistoryMovedAway(t *testing.T) {
	for name, when := range map[string]func(p *play.Plant, leave func()) state.Sink{
		"while a call runs": func(p *play.Plant, leave func()) state.Sink {
			p.Worked = func(b sandbox.Box) {
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
					if _, err := phase.Play(t.Context()); !errors.Is(err, git.ErrForeign) || !strings.Contains(err.Error(), "was moved away") {
						t.Errorf("it ended with %v", err)
					}
				}
				if _, err := os.Lstat(dotgit); err == nil {
					t.Error("there is another history in its place")
				}
				if err := os.Rename(away, dotgit); err != nil {
					t.Fatal(err)
				}
				if r, err := phase.Play(t.Context()); err != nil || r.Status != state.Passed {
					t.Fatalf("once it is back: %s, %v", r.Status, err)
				}
			})
		}
	}
}
