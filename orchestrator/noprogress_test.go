package orchestrator

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"abl/internal/failedspecs"
	"abl/internal/outcome"
	"abl/internal/state"
)

// failingWith returns a world in which the contract fails with these observations in turn, the last one
// repeatedly.
func failingWith(t *testing.T, observed ...string) *world {
	plays := map[string]play{}
	for step := range 5 {
		o := observed[min(step, len(observed)-1)]
		plays[fmt.Sprintf("p1-build-%d.1", step+1)] = good
		plays[fmt.Sprintf("p1-verify-%d.1", step+1)] = play{class: outcome.Done, report: true,
			failed: string(failedspecs.Render([]failedspecs.Entry{{Spec: "GET / → 200", Input: "GET /", Observed: o}}))}
	}
	return newWorld(t, plays)
}

// lack returns the notes about progress.
func (w *world) lack() (all []string) {
	for _, e := range w.events {
		if e.Kind == state.Note && strings.HasPrefix(e.Text, "no progress") {
			all = append(all, e.Text)
		}
	}
	return all
}

// An iteration without progress is reported, the Builder gets one note, and the phase ends early only
// if configured.
func TestNothingMoves(t *testing.T) {
	for _, c := range []struct {
		name     string
		observed []string
		limit    int
		steps    int    // when it is stuck
		stalled  string // iterations whose Builder gets the note
		notes    int
	}{
		{"always the same, by the seed's five", []string{"500"}, 0, 5, "3", 4},
		{"always the same, and one such iteration is enough", []string{"500"}, 1, 2, "", 1},
		{"three are allowed", []string{"500"}, 3, 4, "3", 3},
		{"something moves", []string{"500", "404", "400", "409", "422"}, 1, 5, "", 0},
		{"it moves and comes to a halt twice", []string{"500", "500", "404", "404"}, 2, 5, "3 5", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := failingWith(t, c.observed...)
			var notes []string
			l := w.loop()
			l.NoProgress = c.limit
			l.Before = func(string) error {
				if p := l.phase(); p.Status == state.Building && p.Stalled != "" {
					notes = append(notes, fmt.Sprint(p.Step))
				}
				return nil
			}
			r, err := l.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if r.Status != state.Stuck || r.Step != c.steps {
				t.Errorf("end: got %s at step %d, want stuck at %d", r.Status, r.Step, c.steps)
			}
			if got := strings.Join(notes, " "); got != c.stalled {
				t.Errorf("steps with notes: got %q, want %q", got, c.stalled)
			}
			if got := w.lack(); len(got) != c.notes || c.limit > 0 && c.steps < 5 && !strings.Contains(got[len(got)-1], "(loop.no_progress: ") {
				t.Errorf("notes: got %d, %q, want %d", len(got), got, c.notes)
			}
		})
	}
}

// The reasons why a phase is stuck are read from the records of its calls. A missing record is no
// standstill.
func TestAttempts(t *testing.T) {
	w := failingWith(t, "500", "500", "404")
	r, err := w.loop().Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all, err := Attempts(w.project, r)
	if err != nil || len(all) != 5 {
		t.Fatalf("attempts: got %d, %v, want 5", len(all), err)
	}
	for i, a := range all {
		want := []string{"500", "500", "404", "404", "404"}[i]
		if a.Step != i+1 || a.Verdict != Fail || !a.Built || a.Tree != fmt.Sprintf("tree of p1-build-%d.1", i+1) || len(a.Failed) != 1 || a.Failed[0].Observed != want {
			t.Errorf("attempt %d: got %+v, want a failed one that observed %s", i+1, a, want)
		}
	}
	if err := os.RemoveAll(w.project.Call("p1-verify-4.1")); err != nil {
		t.Fatal(err)
	}
	if all, err = Attempts(w.project, r); err != nil || all[3].Verdict != Unknown {
		t.Errorf("attempt without a record: got %+v, %v, want the verdict %s", all[3], err, Unknown)
	}
	r.Round++
	if all, err = Attempts(w.project, r); err != nil || len(all) != 0 {
		t.Errorf("attempts of another round: got %+v, %v, want none", all, err)
	}
}
