package spec

import (
	"fmt"
	"slices"
)

// Phase returns the spec of a phase, when there is a sound one.
func (s Set) Phase(n int) (Spec, bool) {
	spec, ok := s.specs[n]
	return spec, ok
}

// UpTo returns the sound specs of phases 1 to n, in order.
func (s Set) UpTo(n int) []Spec {
	var specs []Spec
	for _, number := range s.numbers {
		if spec, ok := s.specs[number]; ok && number <= n {
			specs = append(specs, spec)
		}
	}
	return specs
}

// Numbers returns the phases that have a spec, sound or not, ascending.
func (s Set) Numbers() []int { return slices.Clone(s.numbers) }

// Problems are all that reading the specs brought, as LoadDir returned them.
func (s Set) Problems() []Problem { return slices.Clone(s.problems) }

// Check returns what keeps phase n from starting: problems with its own spec,
// with an earlier one, with the numbering. None means that UpTo(n) is complete.
func (s Set) Check(n int) []Problem {
	if n < 1 || n > MaxPhase {
		return []Problem{{File: s.dir, Phase: n, Code: "gap", Fatal: true,
			Text: fmt.Sprintf("%d is not a phase: they are numbered from 1 to %d", n, MaxPhase)}}
	}
	var stops []Problem
	for _, p := range s.problems {
		if p.Fatal && p.Phase <= n {
			stops = append(stops, p)
		}
	}
	if len(stops) == 0 && !slices.Contains(s.numbers, n) {
		stops = append(stops, Problem{File: s.dir, Phase: n, Code: "gap", Fatal: true,
			Text: fmt.Sprintf("phase %d has no spec, the last one is phase%d.md", n, len(s.numbers)),
			Hint: fmt.Sprintf("write phase%d.md", n)})
	}
	return stops
}
