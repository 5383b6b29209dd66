package orchestrator

import (
	"fmt"
	"slices"
	"strings"

	"abl/internal/spec"
	"abl/internal/state"
)

// Unsound means that a spec cannot be used as it is, or that a careful reader knows
// that it cannot be held.
type Unsound struct {
	Phase   int // that was to run
	Problem spec.Problem
	More    int // further ones
}

func (e Unsound) Error() string {
	text := fmt.Sprintf("cannot run phase %d: %s", e.Phase, e.Problem)
	if e.More > 0 {
		text += fmt.Sprintf(" (and %d more: abl spec lint %d)", e.More, e.Phase)
	}
	return text
}

// Hint says what the person can do.
func (e Unsound) Hint() string { return e.Problem.Hint }

// Admit says whether phase n may run, before anything is started or spent on it.
func Admit(f *state.File, specs spec.Set, n int, again bool) (Admission, error) {
	if stops := specs.Check(n); len(stops) > 0 {
		return Admission{}, Unsound{Phase: n, Problem: stops[0]}
	}
	a, err := admit(f, specs, n, again)
	if err == nil && a.Go {
		err = sound(specs, n, f.Phase(n))
	}
	return a, err
}

// sound looks for what cannot be held. What stands in the text that the phase has
// passed with does not count: it is frozen, and was written for an earlier abl.
func sound(specs spec.Set, n int, p state.Phase) error {
	sha, size := p.PassedSHA, p.PassedSize
	if sha == "" && p.Status == state.Passed {
		sha, size = p.SpecSHA, p.SpecSize
	}
	frozen := 0
	if s, ok := specs.Phase(n); ok && s.Begins(sha, size) {
		frozen = strings.Count(s.Text[:size], "\n")
	}
	stops := slices.DeleteFunc(specs.Stops(n), func(p spec.Problem) bool { return p.Line > 0 && p.Line <= frozen })
	if len(stops) == 0 {
		return nil
	}
	return Unsound{n, stops[0], len(stops) - 1}
}

// NextPhase is the first that has not passed with its spec as it is now; 0 is none.
func NextPhase(f *state.File, specs spec.Set) int {
	for _, n := range specs.Numbers() {
		if p := f.Phase(n); p.Status != state.Passed || p.SpecSHA != mustPhase(specs, n).SHA256 {
			return n
		}
	}
	return 0
}
