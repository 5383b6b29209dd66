package agent

import (
	"os"
	"strings"
	"testing"
)

// The example in the docs is a valid scenario.
func TestDocumentedExample(t *testing.T) {
	doc, err := os.ReadFile("../../docs/scripted-agent.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(doc), "```yaml\nversion: 1\n")
	example, _, closed := strings.Cut(rest, "```\n")
	if !found || !closed {
		t.Fatal("example in docs/scripted-agent.md: got none, want one")
	}
	s, err := Parse("example.yaml", []byte("version: 1\n"+example))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		role      string
		iteration int
	}{{"builder", 1}, {"verifier", 1}, {"builder", 2}, {"verifier", 2}} {
		if _, ok := s.Pick(want.role, 1, want.iteration, 1); !ok {
			t.Errorf("call of the example for %s, iteration %d: got none, want one", want.role, want.iteration)
		}
	}
	for _, kind := range []string{"say", "write", "append", "delete", "run", "sleep", "print", "raw", "report"} {
		if !strings.Contains(string(doc), "\n| `"+kind+": ") {
			t.Errorf("description of the step %s: got none, want one", kind)
		}
	}
}
