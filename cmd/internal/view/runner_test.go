package view

import (
	"bytes"
	"strings"
	"testing"

	"abl/internal/redact"
	"abl/internal/state"
)

// On a CI runner the lines of a call are folded, and nobody but abl commands.
func TestRunner(t *testing.T) {
	t.Setenv("GITHUB_ACTIONS", "true")
	var out bytes.Buffer
	v := Open(t.Context(), Options{Progress: Plain, Stderr: redact.ForRunner(&out)})
	for _, e := range append(aPhase(), state.Event{Kind: state.CallStart, Role: "builder", Agent: "x ##[error]y"},
		state.Event{Kind: state.Action, Role: "builder", Text: "::add-mask::abc ##[endgroup]"}) {
		v.Emit(e)
	}
	v.Close()
	depth := 0
	for l := range strings.Lines(out.String()) {
		switch {
		case strings.HasPrefix(l, "::group::"):
			if depth++; !strings.Contains(l, "iteration") {
				t.Errorf("the group %q does not say what it is of", l)
			}
		case l == "::endgroup::\n":
			depth--
		case strings.HasPrefix(strings.TrimSpace(l), "::"), strings.Contains(l, "##["):
			t.Errorf("a command: %q", l)
		}
		if depth < 0 || depth > 1 {
			t.Fatalf("%d groups are open at %q", depth, l)
		}
	}
	if depth != 0 || !strings.Contains(out.String(), "::group::") {
		t.Errorf("%d groups are open at the end of\n%s", depth, out.String())
	}
}
