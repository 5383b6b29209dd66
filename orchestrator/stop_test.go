package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"abl/internal/failedspecs"
	"abl/internal/outcome"
	"abl/internal/state"
	"abl/roles/app"
)

var errHangup = fmt.Errorf("signal %w: %w", syscall.EINTR, context.Canceled)

// TestCancelledAnywhere checks that a loop that is stopped at any effect reports why, and that the
// next loop reaches the same end.
func TestCancelledAnywhere(t *testing.T) {
	plays := map[string]play{"p1-build-1.1": good, "p1-verify-1.1": failing(entry), "p1-build-2.1": good, "p1-verify-2.1": good}
	calm := newWorld(t, plays)
	if err := calm.after(t.Context()); err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= calm.effects; n++ {
		w := newWorld(t, plays)
		ctx, cancel := context.WithCancelCause(t.Context())
		l := w.loop()
		save := l.Save
		l.Save = func() error {
			err := save()
			if w.effects >= n {
				cancel(errHangup)
			}
			return err
		}
		_, err := l.Run(ctx)
		if err != nil && !errors.Is(err, errHangup) {
			t.Fatalf("run stopped after effect %d: got error %v, want %v or none", n, err, errHangup)
		}
		if err := w.after(t.Context()); err != nil {
			t.Fatalf("next run after effect %d: got error %v, want none", n, err)
		}
		if got, want := w.print(), calm.print(); got != want {
			t.Errorf("end after effect %d: got\n%s\nwant\n%s", n, got, want)
		}
	}
}

// TestInterruptedCall checks that an interrupted call is recorded, and that the run reports the
// signal.
func TestInterruptedCall(t *testing.T) {
	w := newWorld(t, map[string]play{"p1-build-1.1": {class: outcome.Interrupted}, "p1-build-1.2": good, "p1-verify-1.1": good})
	ctx, cancel := context.WithCancelCause(t.Context())
	l := w.loop()
	save := l.Save
	l.Save = func() error {
		if len(w.done) == 1 {
			cancel(errHangup)
		}
		return save()
	}
	if _, err := l.Run(ctx); !errors.Is(err, errHangup) {
		t.Errorf("end: got %v, want %v", err, errHangup)
	}
	if got := w.print(); !strings.HasPrefix(got, "building round 1 iteration 1 step 1 call p1-build-1.2 ") || !strings.Contains(got, "p1-build-1.1 builder cli interrupted 0\n") || strings.Contains(got, "src phase1") {
		t.Errorf("state: got\n%s\nwant call p1-build-1.2 after an interrupted one, and no commit", got)
	}
	if err := w.after(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestProjectLostWhileACallRuns checks that an abl that lost the project's lock during a call records
// and commits nothing: the new holder finds the end of the call on disk.
func TestProjectLostWhileACallRuns(t *testing.T) {
	w := newWorld(t, map[string]play{"p1-build-1.1": good, "p1-verify-1.1": good})
	lost := errors.New("another abl works on the project")
	l := w.loop()
	l.CheckLock = func() error {
		if len(w.done) > 0 {
			return lost
		}
		return nil
	}
	if _, err := l.Run(t.Context()); !errors.Is(err, lost) {
		t.Errorf("end: got %v, want %v", err, lost)
	}
	if len(w.rows) > 0 || len(w.commits["src"]) > 0 {
		t.Errorf("rows and commits: got %v and %v, want none", w.rows, w.commits)
	}
	if err := w.after(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestCancelledWhileTheAppStarts checks that cancelling the start of the app is not a failure of the
// app.
func TestCancelledWhileTheAppStarts(t *testing.T) {
	w := newWorld(t, map[string]play{"p1-build-1.1": good, "p1-verify-1.1": good})
	ctx, cancel := context.WithCancelCause(t.Context())
	l := w.loop()
	l.App = fakeApp{func(ctx context.Context) error {
		cancel(errHangup)
		return fmt.Errorf("cannot start the app's container: %w", ctx.Err())
	}}
	if _, err := l.Run(ctx); !errors.Is(err, errHangup) {
		t.Errorf("end: got %v, want %v", err, errHangup)
	}
	if got := w.print(); !strings.HasPrefix(got, "verifying round 1 iteration 1 step 1 call p1-verify-1.1 ") {
		t.Errorf("state: got\n%s\nwant verifying and call p1-verify-1.1", got)
	}
	if err := w.after(t.Context()); err != nil {
		t.Error(err)
	}
}

// app is one whose start does something else.
type fakeApp struct{ up func(context.Context) error }

func (a fakeApp) Up(ctx context.Context, _, _ string) (app.Up, error) { return app.Up{}, a.up(ctx) }
func (fakeApp) Prepared(context.Context, string) (string, error) {
	return "", nil
}
func (fakeApp) Down(context.Context, string) error { return nil }

// TestAppThatDoesNotStart checks that an app that does not start is a failed contract, without a
// Verifier call.
func TestAppThatDoesNotStart(t *testing.T) {
	plays := map[string]play{"p1-build-1.1": good, "p1-build-2.1": good, "p1-verify-2.1": good}
	w := newWorld(t, plays)
	failed := map[string]app.Up{"p1-verify-1.1": {Failed: "exit code 1"}}
	w.up = failed
	if err := w.after(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := w.print()
	if !strings.Contains(want, "history 1.1 step 1 fail 1 ") || !strings.Contains(want, "tests phase1/verify/step-1 p1-verify-1.1\n") || strings.Contains(strings.Join(w.done, " "), "verify-1") {
		t.Errorf("end: got\n%s\nwant a fail at step 1 without a call of the Verifier", want)
	}
	for n := 1; n < 40; n++ {
		w := newWorld(t, plays)
		w.up, w.dieAt = failed, n
		if err := w.after(t.Context()); !errors.Is(err, errDied) {
			t.Fatal(err)
		}
		w.dieAt = 0
		if err := w.after(t.Context()); err != nil || w.print() != want {
			t.Errorf("end after death %d: got %v\n%s\nwant no error and\n%s", n, err, w.print(), want)
		}
	}
}

// TestBudget checks that a reached limit stops the next call, but not a running one.
func TestBudget(t *testing.T) {
	broke := errors.New("nothing left")
	plays := map[string]play{"p1-build-1.1": good, "p1-verify-1.1": good}
	w := newWorld(t, plays)
	w.before = broke
	if err := w.after(t.Context()); !errors.Is(err, broke) || len(w.done) > 0 || w.ups > 0 {
		t.Errorf("end before the Builder: got %v, calls %v, %d starts of the app, want %v, none, 0",
			err, w.done, w.ups, broke)
	}
	for _, key := range []string{"p1-build-1.1", "p1-verify-1.1"} {
		w = newWorld(t, plays)
		w.dieAt = 2 // the round has begun
		if err := w.after(t.Context()); !errors.Is(err, errDied) {
			t.Fatal(err)
		}
		w.dieAt = 0
		intent := filepath.Join(w.project.Call(key), "intent.json")
		if err := errors.Join(os.MkdirAll(filepath.Dir(intent), 0o755), os.WriteFile(intent, []byte("{}"), 0o644)); err != nil {
			t.Fatal(err)
		}
		if err := w.after(t.Context()); err != nil || w.asked != 1 {
			t.Errorf("run after %s had begun: got %v, asked %d times, want no error, once for the other",
				key, err, w.asked)
		}
	}
}

// TestChangedSource checks that a source that changed during its test does not pass.
func TestChangedSource(t *testing.T) {
	w := newWorld(t, map[string]play{"p1-build-1.1": good, "p1-verify-1.1": good})
	l := w.loop()
	w.editWhen(l, func(p state.Phase) bool { return p.Status == state.Verifying })
	if _, err := l.Run(t.Context()); !errors.Is(err, ErrChanged) || len(w.done) != 1 {
		t.Errorf("end: got %v after %v, want %v after the Builder's call", err, w.done, ErrChanged)
	}
}

// editWhen changes two files of the source once, when a phase is saved that matches is.
func (w *world) editWhen(l *Loop, is func(state.Phase) bool) {
	save, edited := l.Save, false
	l.Save = func() error {
		if !edited && is(*l.File.Phases["1"]) {
			edited, w.changed = true, []string{"server.js", "more.js"}
		}
		return save()
	}
}

// TestEditsBeforeEachBuilderCall checks that the user's edits are never committed as the Builder's.
func TestEditsBeforeEachBuilderCall(t *testing.T) {
	noReport := play{class: outcome.Done}
	for name, c := range map[string]struct {
		plays map[string]play
		is    func(state.Phase) bool
		done  int
	}{
		"second-iteration": {
			map[string]play{"p1-build-1.1": good, "p1-verify-1.1": failing(entry), "p1-build-2.1": good, "p1-verify-2.1": good},
			func(p state.Phase) bool { return p.Iteration == 2 && p.Status == state.Building }, 2,
		},
		"second-attempt": {
			map[string]play{"p1-build-1.1": noReport, "p1-build-1.2": good, "p1-verify-1.1": good},
			func(p state.Phase) bool { return p.Attempt == 2 && p.Status == state.Building }, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.plays)
			l := w.loop()
			w.editWhen(l, c.is)
			_, err := l.Run(t.Context())
			const want = `"server.js", "more.js" differ from the last commit`
			if !errors.Is(err, ErrChanged) || !strings.Contains(err.Error(), want) || len(w.done) != c.done {
				t.Errorf("end: got %v after %v, want %q after %d calls", err, w.done, want, c.done)
			}
		})
	}
}

// TestEditsBeforeANewRound checks the same for a later round, and that --take-mine commits the edits
// separately.
func TestEditsBeforeANewRound(t *testing.T) {
	plays := map[string]play{"p1-build-1.1": good, "p1-verify-1.1": failing(entry), "p1-build-2.1": good, "p1-verify-2.1": good}
	w := newWorld(t, plays)
	l := w.loop()
	l.Max = 1
	if p, err := l.Run(t.Context()); err != nil || p.Status != state.Stuck {
		t.Fatalf("first round: got %s, %v, want stuck", p.Status, err)
	}
	w.changed = []string{"server.js"}
	l = w.loop()
	l.File.Phases["1"].Status = state.Ready // like --again
	if _, err := l.Run(t.Context()); !errors.Is(err, ErrChanged) || len(w.done) != 2 {
		t.Fatalf("end: got %v after %v, want %v after 2 calls", err, w.done, ErrChanged)
	}
	l = w.loop()
	l.TakeMine = true
	if _, err := l.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := "phase1/build/step-1 p1-build-1.1, phase1/person/step-2 on p1-buil p1-build-2.1-person-p1-buil, phase1/build/step-2 p1-build-2.1"
	if got := strings.Join(w.commits["src"], ", "); got != want {
		t.Errorf("got commits %s, want %s", got, want)
	}
}

// TestEditsNextToInterruptedWork checks that the user's edits next to uncommitted work of an
// interrupted first call are attributed to neither: there is no commit to compare with.
func TestEditsNextToInterruptedWork(t *testing.T) {
	w := newWorld(t, map[string]play{"p1-build-1.1": {class: outcome.Interrupted}})
	l := w.loop()
	w.editWhen(l, func(p state.Phase) bool { return p.Attempt == 2 })
	if _, err := l.Run(t.Context()); !errors.Is(err, ErrChanged) || len(w.commits["src"]) > 0 {
		t.Errorf("end: got %v and commits %v, want %v and none", err, w.commits["src"], ErrChanged)
	}
}

// TestFilesBeforeTheFirstCommit checks that files that existed before the first commit are committed
// separately.
func TestFilesBeforeTheFirstCommit(t *testing.T) {
	w := newWorld(t, map[string]play{"p1-build-1.1": good, "p1-verify-1.1": good})
	w.changed = []string{"starter.js"}
	if err := w.after(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := "phase1/person/step-1 p1-build-1.1-person-, phase1/build/step-1 p1-build-1.1"
	if got := strings.Join(w.commits["src"], ", "); got != want {
		t.Errorf("got commits %s, want %s", got, want)
	}
}

// TestChangedByHand checks that the user's edits between iterations are detected before the next call,
// and committed as the user's with --take-mine.
func TestChangedByHand(t *testing.T) {
	plays := map[string]play{"p1-build-1.1": good, "p1-verify-1.1": failing(entry), "p1-build-2.1": good, "p1-verify-2.1": good}
	w := newWorld(t, plays)
	l := w.loop()
	w.editWhen(l, func(p state.Phase) bool { return p.Iteration == 2 && len(w.done) == 2 })
	if _, err := l.Run(t.Context()); !errors.Is(err, ErrChanged) || len(w.done) != 2 {
		t.Fatalf("end: got %v after %v, want %v after 2 calls", err, w.done, ErrChanged)
	}
	l = w.loop()
	l.TakeMine = true
	if _, err := l.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(w.commits["src"], ", "), "phase1/build/step-1 p1-build-1.1, "+
		"phase1/person/step-2 on p1-buil p1-build-2.1-person-p1-buil, phase1/build/step-2 p1-build-2.1"; got != want {
		t.Errorf("commits: got %s, want %s", got, want)
	}
}

// TestVerdictStays checks that the verdict on a call is final: later changes of its files have no
// effect.
func TestVerdictStays(t *testing.T) {
	w := newWorld(t, map[string]play{"p1-build-1.1": good, "p1-verify-1.1": failing(entry), "p1-build-2.1": good, "p1-verify-2.1": good})
	l := w.loop()
	snapshot := l.Tests
	l.Tests = dying{snapshot}
	if _, err := l.Run(t.Context()); !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(w.project.Tests, failedspecs.FileName)); err != nil {
		t.Fatal(err)
	}
	if err := w.after(t.Context()); err != nil || !strings.Contains(w.print(), "history 1.1 step 1 fail 1 ") {
		t.Errorf("end: got %v\n%s\nwant no error and a fail at step 1", err, w.print())
	}
}

// dying is a repository that cannot be committed to.
type dying struct{ Tests }

func (dying) Snapshot(context.Context, string, string, bool, func(state.Found) error) (Commit, error) {
	return Commit{}, errDied
}

// TestEvents checks the events of a whole phase, in order.
func TestEvents(t *testing.T) {
	w := newWorld(t, map[string]play{"p1-build-1.1": {class: outcome.Done}, "p1-build-1.2": good, "p1-verify-1.1": good})
	if err := w.after(t.Context()); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, e := range w.events {
		if e.Phase != 1 || e.Round != 1 || e.Iteration != 1 || e.Time.IsZero() {
			t.Errorf("event: got %+v, want phase 1, round 1, iteration 1 and a time", e)
		}
		if e.Kind != state.Note {
			kinds = append(kinds, string(e.Kind)+" "+e.Subject+e.Verdict)
		}
	}
	if got, want := strings.Join(kinds, ", "), "commit phase1/build/step-1, commit phase1/build/step-1.2, commit phase1/verify/step-1, verdict pass"; got != want {
		t.Errorf("events: got %s, want %s", got, want)
	}
}

// TestUnsavedState checks that a state that cannot be saved stops the run before the next effect.
func TestUnsavedState(t *testing.T) {
	full := errors.New("disk full")
	w := newWorld(t, nil)
	l := w.loop()
	l.Save = func() error { return full }
	if _, err := l.Run(t.Context()); !errors.Is(err, full) || len(w.done) > 0 {
		t.Errorf("end: got %v after %v, want %v without a call", err, w.done, full)
	}
	l = w.loop()
	l.File.Phases["1"].Status = state.Status("odd")
	if _, err := l.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "internal error") {
		t.Errorf("end with an odd status: got %v, want an internal error", err)
	}
}
