package orchestrator

import (
	"maps"

	"abl/orchestrator/state"
	"abl/roles"
	"abl/roles/fate"
)

// Weather is what a decision about an outage needs besides the phase itself.
type Weather struct {
	fate.Weather
	Models int // in the role's chain
}

// weathered goes on after a call that the weather ended: with the next model of the
// chain where that may help, else after a wait.
func weathered(p state.Phase, role, why string, class roles.Class, w Weather) (_ state.Phase, err error) {
	if fallsBack(class) && p.Fallback[role]+1 < w.Models {
		p.Fallback = with(p.Fallback, role, p.Fallback[role]+1)
		p.Outage = fate.Tried(p.Outage, class, w.Now)
		return p, nil
	}
	p.Fallback = with(p.Fallback, role, 0) // once around: the first is the one that the person wants
	p.Outage, err = fate.Wait(p.Outage, fate.End{Class: class, Why: why, Back: p.Back, Paid: p.NeedsPerson}, w.Weather)
	return p, err
}

// fallsBack is whether another model may answer where this one does not.
func fallsBack(c roles.Class) bool { return c == roles.Quota || c == roles.Away }

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
