package main

import (
	"slices"
	"strings"
)

// notYet are the settings that this version reads and does not act on. A person
// who sets one is told, rather than left to believe in it.
func notYet() []string {
	return []string{
		"loop.require_approval",
	}
}

// warnNotYet names the settings of the person's that have no effect.
func (s *session) warnNotYet() {
	var idle []string
	for key := range s.conf.Sources {
		if slices.ContainsFunc(notYet(), func(k string) bool { return key == k || strings.HasPrefix(key, k+".") }) {
			idle = append(idle, key)
		}
	}
	slices.Sort(idle)
	if len(idle) > 0 {
		s.in.Warn("this version does not act on " + strings.Join(idle, ", "))
	}
}
