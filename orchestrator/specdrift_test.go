package orchestrator

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"abl/internal/outcome"
	"abl/internal/spec"
	"abl/roles"
	"abl/roles/call"
)

// loopWith returns the loop of a new abl with the current specs. *now has the user's later edits.
func (w *world) loopWith(now *spec.Set) *Loop {
	l := w.loop()
	l.Specs = HeldSpecs{Set: *now, Now: func() spec.Set { return *now }}
	return l
}

// reported reports whether the user got a message.
func (w *world) reported(what string) bool {
	for _, e := range w.events {
		if strings.Contains(e.Text, what) {
			return true
		}
	}
	return false
}

const newRound = "a new round begins on the new text"

// The Builder's call ends and is committed. The Verifier's call does not begin, because the user
// changed the spec meanwhile. If the user restores the text, the round continues; otherwise a new one
// begins.
func TestSpecEditedWhileTheBuilderWorks(t *testing.T) {
	for _, c := range []struct {
		name  string
		keep  bool
		calls []string
		where string
	}{
		{"put-back", false, []string{"p1-build-1.1", "p1-verify-1.1"}, "passed round 1 iteration 1 step 1 "},
		{"kept", true, []string{"p1-build-1.1", "p1-build-2.1", "p1-verify-2.1"}, "passed round 2 iteration 1 step 2 "},
	} {
		t.Run(c.name, func(t *testing.T) {
			now, changed := specs(t, "", ""), specs(t, "- more → done\n", "")
			before := now
			w := newWorld(t, map[string]play{
				"p1-build-1.1":  {class: outcome.Done, report: true, during: func() { now = changed }},
				"p1-verify-1.1": good, "p1-build-2.1": good, "p1-verify-2.1": good,
			})
			_, err := w.loopWith(&now).Run(t.Context())
			var e Edited
			if !errors.As(err, &e) || e != edited(1, 1, "") || !strings.Contains(e.Hint(), "run abl phase 1 again") {
				t.Fatalf("got %v, want %v", err, edited(1, 1, ""))
			}
			if !slices.Equal(w.done, []string{"p1-build-1.1"}) || len(w.commits["src"]) != 1 || w.asked != 1 {
				t.Errorf("got calls %v, commits %v, asked %d times, want one of each", w.done, w.commits, w.asked)
			}
			if !c.keep {
				now = before
			}
			if _, err := w.loopWith(&now).Run(t.Context()); err != nil || !slices.Equal(w.done, c.calls) || w.reported(newRound) != c.keep {
				t.Errorf("got %v, calls %v, new round %t, want calls %v, new round %t", err, w.done, w.reported(newRound), c.calls, c.keep)
			}
			if got := w.print(); !strings.HasPrefix(got, c.where) {
				t.Errorf("got %s, want %s…", got, c.where)
			}
		})
	}
}

// A pass on a text that changed during the call does not count.
func TestSpecEditedWhileTheVerifierWorks(t *testing.T) {
	now, changed := specs(t, ""), specs(t, "- more → done\n")
	w := newWorld(t, map[string]play{
		"p1-build-1.1": good, "p1-verify-1.1": {class: outcome.Done, report: true, during: func() { now = changed }},
	})
	_, err := w.loopWith(&now).Run(t.Context())
	var e Edited
	if !errors.As(err, &e) || len(w.tags) > 0 || len(w.commits["tests"]) != 1 {
		t.Errorf("end: got %v, tags %v, commits %v, want an edited spec, no tags, one commit of the tests",
			err, w.tags, w.commits)
	}
	if !w.reported("the spec of phase 1 changed while it was tested") {
		t.Errorf("events: got %v, want the changed spec of phase 1 in them", w.events)
	}
}

// The user changed the spec while no abl ran, during a call: the call is finished, and then a new
// round begins.
func TestSpecEditedWhileNoAblRuns(t *testing.T) {
	now, changed := specs(t, ""), specs(t, "- more → done\n")
	w := newWorld(t, map[string]play{"p1-build-1.1": good, "p1-build-2.1": good, "p1-verify-2.1": good})
	ctx, stop := context.WithCancel(t.Context())
	l := w.loopWith(&now)
	l.Calls = caller(func(j call.Job) error {
		dir := w.project.Call(j.Call.ID)
		stop()
		return errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "intent.json"), []byte(`{"key":"p1-build-1.1"}`), 0o644), errDied)
	})
	if _, err := l.Run(ctx); err == nil {
		t.Fatal("killed run: got no error, want one")
	}
	now = changed
	if _, err := w.loopWith(&now).Run(t.Context()); err != nil || !slices.Equal(w.done, []string{"p1-build-1.1", "p1-build-2.1", "p1-verify-2.1"}) {
		t.Errorf("second run: got %v, calls %v, want no error, p1-build-1.1 p1-build-2.1 p1-verify-2.1", err, w.done)
	}
	if !w.reported(newRound) || len(w.commits["src"]) != 2 {
		t.Errorf("events and commits: got %v and %v, want a new round and 2 commits of src", w.events, w.commits)
	}
}

// The user changed the spec after abl was killed during the Verifier's call. The result of the call
// is not a pass on the new text.
func TestSpecEditedAfterAKill(t *testing.T) {
	now, changed := specs(t, ""), specs(t, "- more → done\n")
	w := newWorld(t, map[string]play{"p1-build-1.1": good, "p1-verify-1.1": good, "p1-build-2.1": good, "p1-verify-2.1": good})
	w.dieAt = effectOf(t, "p1-verify-1.1")
	if _, err := w.loopWith(&now).Run(t.Context()); !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	w.dieAt, now = 0, changed
	if _, err := w.loopWith(&now).Run(t.Context()); err != nil || len(w.done) != 4 || !w.reported("the spec of phase 1 changed while it was tested") {
		t.Errorf("second run: got %v, calls %v, want no error, 4 calls and the changed spec in an event", err, w.done)
	}
	if got := w.print(); !strings.HasPrefix(got, "passed round 2 ") || len(w.tags) != 2 || !strings.HasSuffix(w.tags[0], " p1-build-2.1") {
		t.Errorf("tags and end: got %v and\n%s\nwant 2 tags from p1-build-2.1 on, and a pass in round 2", w.tags, got)
	}
}

// effectOf returns the number of the effect after a call.
func effectOf(t *testing.T, key string) int {
	now := specs(t, "")
	w := newWorld(t, map[string]play{"p1-build-1.1": good, "p1-verify-1.1": good})
	at := 0
	w.play[key] = play{class: outcome.Done, report: true, during: func() { at = w.effects + 1 }}
	if _, err := w.loopWith(&now).Run(t.Context()); err != nil || at == 0 {
		t.Fatal(err)
	}
	return at
}

// caller is a Caller made of a function, whose calls never end.
type caller func(call.Job) error

func (c caller) Run(_ context.Context, j call.Job) (roles.Outcome, error) {
	return roles.Outcome{}, c(j)
}

// A phase depends on the specs of earlier phases, but not on those of later ones.
func TestSpecOfAnotherPhaseEdited(t *testing.T) {
	old, one, two, both := specs(t, "", ""), specs(t, "- more → done\n", ""), specs(t, "", "- more → done\n"), specs(t, "")
	for _, c := range []struct {
		name    string
		now     spec.Set
		running int
		want    int
	}{
		{"nothing", old, 2, 0},
		{"an-earlier-one", one, 2, 1},
		{"this-one", two, 2, 2},
		{"a-later-one", two, 1, 0},
		{"taken-away", both, 2, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := HeldSpecs{Set: old, Now: func() spec.Set { return c.now }}
			if got := l.changed(c.running); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
	if hint := edited(1, 2, "").Hint(); !strings.Contains(hint, "frozen") || !strings.Contains(hint, "abl phase 2") {
		t.Errorf("hint: got %q, want frozen and abl phase 2 in it", hint)
	}
}
