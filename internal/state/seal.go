package state

import (
	"maps"
	"slices"
)

// Seal is what a repository was like at one moment.
type Seal struct {
	Steering map[string]string // what decides what a person's git runs: path in .git to hash
	History  map[string]string // what HEAD and each ref name
}

// Changed names what two looks do not show alike, sorted.
func Changed(was, is map[string]string) []string {
	names := map[string]bool{}
	for name, value := range was {
		if now, ok := is[name]; !ok || now != value {
			names[name] = true
		}
	}
	for name := range is {
		if _, ok := was[name]; !ok {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
