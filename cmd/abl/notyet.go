package main

import (
	"fmt"
	"slices"
	"strings"
)

// notYet are the settings that this version reads and does not act on. A person
// who sets one is told, rather than left to believe in it.
func notYet() []string {
	return []string{
		"loop.idle_timeout", "loop.outage_budget", "loop.no_progress", "loop.require_approval",
		"verify.evidence", "verify.challenge", "network.allow",
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
	for role, chain := range map[string][]string{"builder": s.conf.Models.Builder, "verifier": s.conf.Models.Verifier} {
		if len(chain) > 1 {
			idle = append(idle, fmt.Sprintf("models.%s after the first (%s is used)", role, chain[0]))
		}
	}
	slices.Sort(idle)
	if len(idle) > 0 {
		fmt.Fprintf(s.in.Stderr, "abl: warning: this version does not act on %s\n", strings.Join(idle, ", "))
	}
}
