// Package lint reads specs as a careful person would before money is spent on
// them: it names what is vague, missing, said twice or contradictory. Errors stop
// a phase, warnings do not; docs/specs.md lists the codes.
package lint

import (
	"cmp"
	"slices"

	"abl/orchestrator/spec"
)

// All returns what there is to say about the specs: the problems that reading
// them brought and those of this package, by phase and line.
func All(set spec.Set) []spec.Problem {
	all := set.Problems()
	seen := pairs{}
	for _, n := range set.Numbers() {
		if s, sound := set.Phase(n); sound {
			all = append(all, phase(s, seen)...)
		}
	}
	slices.SortStableFunc(all, func(a, b spec.Problem) int {
		return cmp.Or(cmp.Compare(a.Phase, b.Phase), cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return all
}

// Stops returns what keeps phase n from starting although its spec can be read.
// Errors in earlier specs do not: those phases have passed, and a spec that is
// frozen could not be mended.
func Stops(set spec.Set, n int) []spec.Problem {
	return slices.DeleteFunc(All(set), func(p spec.Problem) bool { return p.Phase != n || !p.Stops() })
}

// phase looks at one spec, and at how its contracts stand to those before.
func phase(s spec.Spec, seen pairs) []spec.Problem {
	r := &remarks{spec: s}
	if !s.HasContracts {
		r.add(1, "", "no-contracts", "there is no Contracts section, so every line with an arrow is taken for a contract", `put "## Contracts" above them`)
	}
	if !s.HasContext {
		r.add(1, "", "no-context", "there is no Context section", `say under "## Context" what is intended and what is decided`)
	}
	for _, c := range s.Contracts {
		r.contract(c)
		r.against(c, seen)
	}
	return r.all
}

// remarks collects what there is to say about one spec.
type remarks struct {
	spec spec.Spec
	all  []spec.Problem
}

func (r *remarks) add(line int, id, code, text, hint string) *spec.Problem {
	r.all = append(r.all, spec.Problem{File: r.spec.File, Line: line, Phase: r.spec.Number, Contract: id, Code: code, Text: text, Hint: hint})
	return &r.all[len(r.all)-1]
}
