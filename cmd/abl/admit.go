package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"abl/cmd/internal/exit"
	"abl/internal/spec"
	"abl/internal/state"
	"abl/orchestrator"
)

// phaseNumber reads N, or PHASE=N as earlier tools had it.
func phaseNumber(arg string) (int, error) {
	text := arg
	if key, value, ok := strings.Cut(arg, "="); ok && strings.EqualFold(key, "phase") {
		text = value
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, exit.With(exit.Usage, fmt.Errorf("cannot run phase %q: a phase is a number from 1 on", arg), "abl phase 1")
	}
	return n, nil
}

// drift is an orchestrator.Frozen or Drifted.
type drift interface {
	error
	Hint() string
}

// admit says whether phase n may run, before anything is started.
func admit(f *state.File, specs spec.Set, n int, again bool) (orchestrator.Admission, error) {
	if stops := specs.Check(n); len(stops) > 0 {
		p := stops[0]
		return orchestrator.Admission{}, exit.With(exit.Usage, fmt.Errorf("cannot run phase %d: %s", n, p), p.Hint)
	}
	a, err := orchestrator.Admit(f, specs, n, again)
	if err == nil && a.Go {
		err = sound(specs, n, stateOf(f, n))
	}
	return a, err
}

// sound refuses a spec of which a careful reader knows that it cannot be held,
// before anything is spent on it. What stands in the text that the phase has passed
// with does not count: it is frozen, and was written for an earlier abl.
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
	more := ""
	if len(stops) > 1 {
		more = fmt.Sprintf(" (and %d more: abl spec lint %d)", len(stops)-1, n)
	}
	return exit.With(exit.Usage, fmt.Errorf("cannot run phase %d: %s%s", n, stops[0], more), stops[0].Hint)
}
