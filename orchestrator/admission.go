package orchestrator

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"abl/internal/spec"
	"abl/internal/state"
)

// Admission says whether a phase may run, decided before anything is started.
type Admission struct {
	Go   bool        // the loop has something to do
	Open state.Phase // where it takes up
	Why  string      // one sentence for the person
}

// Refused means that a phase may not run until the person has changed something.
type Refused struct{ Why, Do string }

func (e Refused) Error() string { return e.Why }

// Hint says what the person can do.
func (e Refused) Hint() string { return e.Do }

// Frozen means that the text of a spec was changed where it may only grow.
type Frozen struct{ Refused }

// frozen is that of a phase; added says that the earlier text stands, and what follows
// it changes a contract.
func frozen(phase int, added bool) Frozen {
	how := "above its end"
	if added {
		how = "at its end in a way that alters its contracts"
	}
	return Frozen{Refused{
		fmt.Sprintf("cannot go on: the spec of phase %d was changed %s, and it is frozen: it is approved, or a later phase has begun", phase, how),
		fmt.Sprintf("put the earlier text back and add what is new at its end, or in the spec of a later phase (.abl/specs/phase%d.md)", phase),
	}}
}

// drifted is that the spec of a phase is not the one that it passed with.
func drifted(phase int) Refused {
	return Refused{
		fmt.Sprintf("the spec of phase %d is not the one it passed with", phase),
		fmt.Sprintf("run abl phase %d, which begins a round on the new text, or put the earlier text back", phase),
	}
}

// Asked is how a user runs a phase.
type Asked struct {
	Again    bool   // --again
	Settings string // hash of the settings, the prompts and the description as they are now, "" for unknown
}

// admit decides what running phase n means now. A passed phase with an
// unchanged spec has nothing to do; a changed spec, or again, opens a new round
// of a phase that is passed, stuck or unverified, and so do changed settings of one that is stuck or
// unverified. That of a stale phase, or of a passed one again, begins with a replay of what it passed with.
func admit(f *state.File, specs spec.Set, n int, asked Asked) (Admission, error) {
	drift := Drift(f, specs)
	for _, k := range slices.Sorted(maps.Keys(drift)) {
		if is, ok := drift[k].(Frozen); ok {
			return Admission{}, is
		}
	}
	for k := 1; k < n; k++ {
		before, why := f.Phase(k).Status, "has not passed"
		if before == state.Stale {
			why = "is stale"
		}
		if before != state.Passed {
			return Admission{}, Refused{fmt.Sprintf("cannot run phase %d: phase %d %s", n, k, why), fmt.Sprintf("run abl phase %d first", k)}
		}
		if drift[k] != nil {
			return Admission{}, fmt.Errorf("cannot run phase %d: %w", n, drift[k])
		}
	}
	p, this := f.Phase(n), mustPhase(specs, n)
	changed := p.SpecSHA != "" && p.SpecSHA != this.SHA256
	reopened := p
	reopened.Status, reopened.Approved = state.Ready, false
	switch p.Status {
	case state.Passed, state.Stale:
		if changed {
			return Admission{true, reopened, "its spec has changed since it passed: a new round begins"}, nil
		}
		if asked.Again || p.Status == state.Stale {
			p.Status = state.Stale
			return Admission{true, p, "its tests are run again on the current source; no agent is called"}, nil
		}
		return Admission{false, p, fmt.Sprintf("phase %d has already passed and its spec has not changed", n)}, nil
	case state.Stuck, state.Unverified:
		switch {
		case changed || asked.Again:
			return Admission{true, reopened, "a new round begins"}, nil
		case p.Settings != "" && asked.Settings != "" && p.Settings != asked.Settings:
			return Admission{true, reopened, "settings, prompts or project.md changed since its last round: a new round begins"}, nil
		}
		return Admission{false, p, fmt.Sprintf("phase %d is %s: %s", n, p.Status, ChangeFirst)}, nil
	case state.Ready:
		return Admission{true, p, "a round begins"}, nil
	}
	if changed {
		return Admission{true, p, "its spec has changed since this round began: abl finishes the call that runs, then begins a new round"}, nil
	}
	return Admission{true, p, fmt.Sprintf("it resumes in iteration %d (%s)", p.Iteration, p.Status)}, nil
}

// ChangeFirst is what begins a new round of a phase that is stuck or unverified.
const ChangeFirst = "change its spec, a setting, a prompt or project.md and run it again, or run it with --again"

func mustPhase(specs spec.Set, n int) spec.Spec {
	s, _ := specs.Phase(n)
	return s
}

// Drift is, by phase, how its spec differs from the one that it passed with: a
// Frozen where it may only grow, else Refused.
func Drift(f *state.File, specs spec.Set) map[int]error {
	all := map[int]error{}
	for _, n := range specs.Numbers() {
		p, s := f.Phase(n), mustPhase(specs, n)
		sha, size := p.PassedSHA, p.PassedSize
		if sha == "" { // it never passed, or before this was noted
			sha, size = p.SpecSHA, p.SpecSize
		}
		next := f.Phase(n + 1)
		later := next.Status != state.Ready || next.Round > 0 // a round that is about to reopen is ready, too
		switch {
		case sha == "" || sha == s.SHA256:
		case (p.Approved || later) && !s.Extends(sha, size):
			all[n] = frozen(n, s.Begins(sha, size))
		case p.Status == state.Passed || p.Status == state.Stale:
			all[n] = drifted(n)
		}
	}
	return all
}

// unsound is that a spec cannot be used as it is, or that a careful reader knows that
// it cannot be held: the first problem, and how many more there are.
func unsound(phase int, problem spec.Problem, more int) Refused {
	text := fmt.Sprintf("cannot run phase %d: %s", phase, problem)
	if more > 0 {
		text += fmt.Sprintf(" (and %d more: abl spec lint %d)", more, phase)
	}
	return Refused{text, problem.Hint}
}

// Admit says whether phase n may run, before anything is started or spent on it.
func Admit(f *state.File, specs spec.Set, n int, asked Asked) (Admission, error) {
	if stops := specs.Check(n); len(stops) > 0 {
		return Admission{}, unsound(n, stops[0], 0)
	}
	a, err := admit(f, specs, n, asked)
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
	return unsound(n, stops[0], len(stops)-1)
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
