package view

import (
	"bytes"
	"strings"
	"testing"

	"abl/internal/redact"
	"abl/internal/state"
)

// On a CI runner the lines of a call are folded, and no command for the runner comes from an agent.
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
				t.Errorf("group: got %q, want one that names the iteration", l)
			}
		case l == "::endgroup::\n":
			depth--
		case strings.HasPrefix(strings.TrimSpace(l), "::"), strings.Contains(l, "##["):
			t.Errorf("line: got %q, want no command of the runner", l)
		}
		if depth < 0 || depth > 1 {
			t.Fatalf("open groups: got %d at %q, want at most 1", depth, l)
		}
	}
	if depth != 0 || !strings.Contains(out.String(), "::group::") {
		t.Errorf("open groups at the end: got %d, want none open and one or more in\n%s", depth, out.String())
	}
}
