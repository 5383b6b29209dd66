package orchestrator

import (
	"fmt"

	"abl/orchestrator/spec"
	"abl/orchestrator/state"
)

// Admission says whether a phase may run, decided before anything is started.
type Admission struct {
	Go   bool        // the loop has something to do
	Open state.Phase // where it takes up
	Why  string      // one sentence for the person
}

// NotYet means that the phases before this one have not passed.
type NotYet struct{ Phase, First int }

func (e NotYet) Error() string {
	return fmt.Sprintf("cannot run phase %d: phase %d has not passed", e.Phase, e.First)
}

// Frozen means that the text of a spec was changed where it may only grow.
type Frozen struct {
	Phase int
	Added bool // the earlier text stands, and what follows it changes a contract
}

func (e Frozen) Error() string {
	how := "above its end"
	if e.Added {
		how = "at its end in a way that alters its contracts"
	}
	return fmt.Sprintf("cannot go on: the spec of phase %d was changed %s, and it is frozen: it is approved, or a later phase has begun", e.Phase, how)
}

// Admit decides what running phase n means now. A passed phase with an
// unchanged spec has nothing to do; a changed spec, or again, opens a new round
// of a phase that is passed, stuck or unverified.
func Admit(f *state.File, specs spec.Set, n int, again bool) (Admission, error) {
	if err := frozen(f, specs); err != nil {
		return Admission{}, err
	}
	for k := 1; k < n; k++ {
		if before := at(f, k); before.Status != state.Passed {
			return Admission{}, NotYet{n, k}
		}
	}
	p, this := at(f, n), mustPhase(specs, n)
	changed := p.SpecSHA != "" && p.SpecSHA != this.SHA256
	reopened := p
	reopened.Status, reopened.Approved = state.Ready, false
	switch p.Status {
	case state.Passed:
		if changed {
			return Admission{true, reopened, "its spec changed since it passed: a new round begins"}, nil
		}
		return Admission{false, p, "its spec is unchanged, nothing to do"}, nil
	case state.Stuck, state.Unverified:
		if changed || again {
			return Admission{true, reopened, "a new round begins"}, nil
		}
		return Admission{false, p, "it is " + string(p.Status) + ": change its spec, or run it with --again"}, nil
	case state.Ready:
		return Admission{true, p, "it begins"}, nil
	}
	if changed {
		return Admission{true, p, "its spec changed since this round began: a call under way is taken to its end, then a new round begins"}, nil
	}
	return Admission{true, p, fmt.Sprintf("it goes on in iteration %d (%s)", p.Iteration, p.Status)}, nil
}

// at is where phase n rests; one that never ran is ready.
func at(f *state.File, n int) state.Phase {
	if p, ok := f.Phases[fmt.Sprint(n)]; ok && p != nil {
		return *p
	}
	return state.Phase{Status: state.Ready}
}

func mustPhase(specs spec.Set, n int) spec.Spec {
	s, _ := specs.Phase(n)
	return s
}

// frozen finds a spec that was changed although it may only grow.
func frozen(f *state.File, specs spec.Set) error {
	for _, n := range specs.Numbers() {
		p, s := at(f, n), mustPhase(specs, n)
		next := at(f, n+1)
		later := next.Status != state.Ready || next.Round > 0 // a round that is about to reopen is ready, too
		if p.SpecSHA == "" || !p.Approved && !later || p.SpecSHA == s.SHA256 {
			continue
		}
		if !s.Extends(p.SpecSHA, p.SpecSize) {
			return Frozen{n, s.Begins(p.SpecSHA, p.SpecSize)}
		}
	}
	return nil
}
