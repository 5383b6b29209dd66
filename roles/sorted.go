package roles

import (
	"maps"
	"slices"
)

// sortedKeys makes what is built from a map the same every time.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
