package orchestrator

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"abl/internal/spec"
	"abl/internal/state"
)

// Admission is the decision whether a phase may run, made before anything is started.
type Admission struct {
	Go   bool        // the loop has something to do
	Open state.Phase // where it continues
	Why  string      // one sentence for the user
}

// Refused means that a phase may not run until the user has changed something.
type Refused struct{ Why, Do string }

func (e Refused) Error() string { return e.Why }

// Hint returns what the user can do.
func (e Refused) Hint() string { return e.Do }

// Frozen means that a spec was changed in text that may only be extended.
type Frozen struct{ Refused }

// frozen returns the error for a phase. added is true if the earlier text is unchanged and the
// text after it changes a contract.
func frozen(phase int, added bool) Frozen {
	how := "above its end"
	if added {
		how = "at its end in a way that alters its contracts"
	}
	return Frozen{Refused{
		fmt.Sprintf("cannot continue: the spec of phase %d was changed %s, and it is frozen: it is approved, "+
			"or a later phase has begun", phase, how),
		fmt.Sprintf("restore the earlier text and add new text at its end, or in the spec of a later phase "+
			"(.abl/specs/phase%d.md)", phase),
	}}
}

// drifted returns the error for a spec that changed since its phase passed.
func drifted(phase int) Refused {
	return Refused{
		fmt.Sprintf("the spec of phase %d changed since it passed", phase),
		fmt.Sprintf("run abl phase %d, which begins a round on the new text, or restore the earlier text", phase),
	}
}

// Asked describes how the user runs a phase. FILES is a hash of the settings, prompts and description,
// and FLAGS one of the flags that override settings.
type Asked struct {
	Again    bool   // --again
	Settings string // identifies the current settings: FILES, or FILES+FLAGS; "" if unknown
}

// admit decides what running phase n means now. A passed phase with an unchanged spec has nothing
// to do. A changed spec, or Again, opens a new round of a phase that is passed, stuck or
// unverified. Changed settings open one of a phase that is stuck or unverified. The new round of a
// stale phase, or of a passed phase with Again, begins with a replay of its tests.
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
			return Admission{}, Refused{fmt.Sprintf("cannot run phase %d: phase %d %s", n, k, why),
				fmt.Sprintf("run abl phase %d first", k)}
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
		case differ(p.Settings, asked.Settings):
			return Admission{true, reopened,
				"settings, prompts or project.md changed since its last round: a new round begins"}, nil
		}
		return Admission{false, p, fmt.Sprintf("phase %d is %s: %s", n, p.Status, ChangeFirst)}, nil
	case state.Ready:
		return Admission{true, p, "a round begins"}, nil
	}
	if changed {
		return Admission{true, p, "its spec has changed since this round began: abl finishes the call that runs, " +
			"then begins a new round"}, nil
	}
	return Admission{true, p, fmt.Sprintf("it resumes in iteration %d (%s)", p.Iteration, p.Status)}, nil
}

// differ reports whether the files of the settings changed, or the flags ask for something else. A run
// without the flags of the last round does not differ: they applied to that run.
func differ(was, is string) bool {
	files, flags, _ := strings.Cut(is, "+")
	wasFiles, wasFlags, _ := strings.Cut(was, "+")
	return was != "" && is != "" && (files != wasFiles || flags != "" && flags != wasFlags)
}

// ChangeFirst is the hint for a phase that is stuck or unverified.
const ChangeFirst = "change its spec, a setting, a prompt or project.md and run it again, or run it with --again"

func mustPhase(specs spec.Set, n int) spec.Spec {
	s, _ := specs.Phase(n)
	return s
}

// Drift returns how specs differ from those that their phases passed with, by phase. An error is a
// Frozen if the spec may only be extended, else a Refused.
func Drift(f *state.File, specs spec.Set) map[int]error {
	all := map[int]error{}
	for _, n := range specs.Numbers() {
		p, s := f.Phase(n), mustPhase(specs, n)
		sha, size := p.PassedSHA, p.PassedSize
		if sha == "" { // it never passed, or passed before abl recorded this
			sha, size = p.SpecSHA, p.SpecSize
		}
		next := f.Phase(n + 1)
		later := next.Status != state.Ready || next.Round > 0 // a reopened phase is also ready
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

// unsound returns the error for a spec that cannot be used: its first problem, and the number of
// the others.
func unsound(phase int, problem spec.Problem, more int) Refused {
	text := fmt.Sprintf("cannot run phase %d: %s", phase, problem)
	if more > 0 {
		text += fmt.Sprintf(" (and %d more: abl spec lint %d)", more, phase)
	}
	return Refused{text, problem.Hint}
}

// Admit decides whether phase n may run, before anything is started or spent.
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

// sound checks the specs for contracts that cannot be met. It ignores the text with which the phase
// has passed, which is frozen and was written for an earlier abl.
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

// NextPhase returns the first phase that has not passed with its current spec. If all have, it returns the
// last phase, 1 without a spec, and pending is false.
func NextPhase(f *state.File, specs spec.Set) (n int, pending bool) {
	for _, n = range specs.Numbers() {
		if p := f.Phase(n); p.Status != state.Passed || p.SpecSHA != mustPhase(specs, n).SHA256 {
			return n, true
		}
	}
	return max(n, 1), false
}
