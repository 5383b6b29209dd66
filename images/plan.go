package images

import (
	"fmt"
	"slices"
	"strings"
)

// step is one image to make, and why.
type step struct {
	recipe recipe
	cause  string
}

// plan goes from the wanted image down to the first one that the engine has,
// and gives what has to be made from there up. The chain is ordered from the
// base upwards; each stands on the one before it.
func plan(have []string, chain ...recipe) []step {
	var steps []step
	for i, r := range slices.Backward(chain) {
		if slices.Contains(have, r.ref) {
			break
		}
		cause := "missing"
		if i < len(chain)-1 {
			cause = "needed by " + chain[i+1].ref
		}
		steps = append(steps, step{recipe: r, cause: cause})
	}
	slices.Reverse(steps)
	return steps
}

// show prints a plan, one line a step.
func show(steps []step) string {
	var b strings.Builder
	for _, s := range steps {
		from := s.recipe.parent
		if from == "" {
			from = "nothing"
		}
		fmt.Fprintf(&b, "make %s from %s: %s\n", s.recipe.ref, from, s.cause)
	}
	return b.String()
}
