package orchestrator

import (
	"maps"

	"abl/internal/outcome"
	"abl/internal/state"
	"abl/roles/retry"
)

// Retry is what a decision about a transient failure needs besides the phase itself.
type Retry struct {
	retry.Policy
	Models int // in the role's chain
}

// afterTransient goes on after a call that a transient failure ended: with the next model of the
// chain where that may help, else after a wait.
func afterTransient(p state.Phase, role, why string, class outcome.Outcome, w Retry) (_ state.Phase, err error) {
	if fallsBack(class) && p.Fallback[role]+1 < w.Models {
		p.Fallback = with(p.Fallback, role, p.Fallback[role]+1)
		p.Outage = retry.Tried(p.Outage, class, w.Now)
		return p, nil
	}
	p.Fallback = with(p.Fallback, role, 0) // once around: the first is the one that the person wants
	p.Outage, err = retry.Wait(p.Outage, retry.End{Class: class, Why: why, Back: p.Back, Paid: p.NeedsPerson}, w.Policy)
	return p, err
}

// fallsBack is whether another model may answer where this one does not.
func fallsBack(c outcome.Outcome) bool { return c == outcome.Quota || c == outcome.Unavailable }

// with is a copy of m in which key has n; 0 takes it out.
func with(m map[string]int, key string, n int) map[string]int {
	m = maps.Clone(m)
	if n == 0 {
		delete(m, key)
		return m
	}
	if m == nil {
		m = map[string]int{}
	}
	m[key] = n
	return m
}
