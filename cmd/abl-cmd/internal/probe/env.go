//go:build linux

package probe

import (
	"maps"
	"slices"
	"strings"

	"abl/internal/helper"
	"abl/internal/sandbox"
)

// environment checks that there are the variables that are meant, with the
// values that are meant, and no other. Values are never shown: this is kept.
func environment(env []string, meant map[string]string) sandbox.Check {
	var got []string
	for _, line := range env {
		name, value, _ := strings.Cut(line, "=")
		if digest, ok := meant[name]; ok && digest != "" && digest != helper.Digest(value) {
			name += " with another value"
		}
		got = append(got, name)
	}
	// A variable whose value may be any may also be missing.
	want := slices.DeleteFunc(slices.Sorted(maps.Keys(meant)), func(name string) bool {
		return meant[name] == "" && !slices.Contains(got, name)
	})
	slices.Sort(got)
	return sandbox.Same("environment inside", strings.Join(want, " "), strings.Join(got, " "))
}
