package orchestrator

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"abl/internal/git/gitdir"
	"abl/internal/outcome"
	"abl/internal/state"
	"abl/roles"
)

// sealed returns a world with this state of its two repositories.
func sealed(t *testing.T, plays map[string]play) *world {
	w := newWorld(t, plays)
	for _, name := range []string{"src", "tests"} {
		w.moves(name, "config", "1", "HEAD", "ref: refs/heads/main", "refs/heads/main", "aaa")
	}
	return w
}

// moves changes the state of a repository: names with a slash, and HEAD, are history.
func (w *world) moves(name string, pairs ...string) {
	if w.seal == nil {
		w.seal = map[string]state.Seal{}
	}
	s := state.Seal{Steering: maps.Clone(w.seal[name].Steering), History: maps.Clone(w.seal[name].History)}
	if s.Steering == nil {
		s = state.Seal{Steering: map[string]string{}, History: map[string]string{}}
	}
	for i := 0; i < len(pairs); i += 2 {
		into := s.Steering
		if pairs[i] == "HEAD" || strings.HasPrefix(pairs[i], "refs/") {
			into = s.History
		}
		into[pairs[i]] = pairs[i+1]
	}
	w.seal[name] = s
}

func (w *world) notes() string {
	var all []string
	for _, e := range w.events {
		if e.Kind == state.Note {
			all = append(all, e.Role+": "+e.Text)
		}
	}
	return strings.Join(all, "\n")
}

// A change of the history during a call ends the run before the snapshot. The call and its row are
// saved, and further runs fail in the same way until the user deletes the note.
func TestHistoryMovesDuringACall(t *testing.T) {
	for _, c := range []struct{ repo, key, name string }{
		{"src", "p1-build-1.1", "refs/heads/main"}, {"src", "p1-build-1.1", "HEAD"}, {"src", "p1-build-1.1", "refs/tags/new"},
		{"tests", "p1-verify-1.1", "refs/heads/main"},
	} {
		w := sealed(t, map[string]play{"p1-build-1.1": good, "p1-verify-1.1": good})
		moved := good
		moved.during = func() { w.moves(c.repo, c.name, "b\x1bb") }
		w.play[c.key] = moved
		for range 2 {
			err := w.after(t.Context())
			if !errors.Is(err, ErrMoved) || !strings.Contains(err.Error(), c.name) || !strings.Contains(err.Error(), c.key) || strings.Contains(err.Error(), "\x1b") {
				t.Fatalf("%v: got error %v, want %v with the name and the call", c, err, ErrMoved)
			}
		}
		if n := len(w.commits[c.repo]); n != 0 {
			t.Errorf("%v: got %d commits, want none", c, n)
		}
		if got := strings.Count(strings.Join(w.rows, "\n"), c.key); got != 1 {
			t.Errorf("%v: got %d rows for the call, want 1", c, got)
		}
		note := filepath.Join(w.project.Call(c.key), roles.HistoryFile)
		if err := os.Remove(note); err != nil {
			t.Fatal(err)
		}
		if err := w.after(t.Context()); err != nil {
			t.Errorf("%v: got error %v without the note, want none", c, err)
		}
		if got := strings.Count(strings.Join(w.done, " "), c.key); got != 1 {
			t.Errorf("%v: got %d calls, want 1", c, got)
		}
	}
}

// A history that was restored counts as unchanged.
func TestHistoryPutBack(t *testing.T) {
	w := sealed(t, map[string]play{"p1-verify-1.1": good})
	w.play["p1-build-1.1"] = play{class: outcome.Done, report: true, during: func() { w.moves("src", "refs/heads/main", "bbb") }}
	if err := w.after(t.Context()); !errors.Is(err, ErrMoved) {
		t.Fatal(err)
	}
	w.moves("src", "refs/heads/main", "aaa")
	if err := w.after(t.Context()); err != nil {
		t.Error(err)
	}
}

// Between calls users may commit and configure. Changed files that steer their git are reported once.
func TestSteeringBetweenCalls(t *testing.T) {
	w := sealed(t, map[string]play{"p1-build-1.1": good, "p1-verify-1.1": failing(entry), "p1-build-2.1": good, "p1-verify-2.1": good})
	w.play["p1-verify-1.1"] = play{class: outcome.Done, report: true, failed: entry, during: func() {
		w.moves("src", "config", "2", "hooks/pre-commit", "3", "refs/heads/main", "bbb")
	}}
	if err := w.after(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := "verifier: failed_specs.md line 1: SPEC names no contract of phases 1 to 0\n" + // this world has no specs
		"builder: in the .git of src these changed since the call before: config, hooks/pre-commit"
	if got := w.notes(); got != want {
		t.Errorf("notes: got\n%s\nwant\n%s", got, want)
	}
}

func TestSteeringDuringACall(t *testing.T) {
	w := sealed(t, map[string]play{"p1-verify-1.1": good})
	w.play["p1-build-1.1"] = play{class: outcome.Done, report: true, during: func() { w.moves("src", "config", "2") }}
	if err := w.after(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := w.notes(), "builder: in the .git of src these changed while the call ran: config"; got != want {
		t.Errorf("notes: got\n%s\nwant\n%s", got, want)
	}
}

// A forbidden file in .git prevents calls and commits.
func TestForeignGit(t *testing.T) {
	w := sealed(t, map[string]play{"p1-build-1.1": good})
	w.sealErr = gitdir.Foreign("a socket")
	if err := w.after(t.Context()); !errors.Is(err, gitdir.ErrForeign) || len(w.done) > 0 {
		t.Errorf("run with a foreign .git: got %v, calls %v, want %v, no calls", err, w.done, gitdir.ErrForeign)
	}
	w.sealErr = nil
	w.play["p1-build-1.1"] = play{class: outcome.Done, report: true, during: func() { w.sealErr = gitdir.Foreign("alternates") }}
	err := w.after(t.Context())
	if !errors.Is(err, gitdir.ErrForeign) || !strings.Contains(err.Error(), "call p1-build-1.1 is saved") || len(w.commits["src"]) > 0 {
		t.Errorf("run after the call: got %v, commits %v, want %v that names the call, no commits",
			err, w.commits["src"], gitdir.ErrForeign)
	}
}
