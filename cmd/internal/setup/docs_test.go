package setup

import (
	"os"
	"strings"
	"testing"

	"abl/images"
	"abl/roles/agent"
)

// docs/agents.md has a correct row for each agent that has a program.
func TestAgentsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/agents.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range agent.Names() {
		if images.Version(name) == "" {
			continue
		}
		a, err := agent.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		vars := a.Provider
		_, row, found := strings.Cut(string(page), "\n| `"+name+"` |")
		row, _, _ = strings.Cut(row, "\n")
		if !found || a.Image != name {
			t.Errorf("%s: got image %s, row %t, want image %s, row true", name, a.Image, found, name)
		}
		for _, want := range []string{" " + images.Version(name) + " |", "| " + a.DefaultModel + " |", "| `" + vars.KeyVar + "` |", "| `" + vars.BaseVar + "`"} {
			if !strings.Contains(row, want) {
				t.Errorf("row of %s: got %s, want %q in it", name, row, want)
			}
		}
	}
}
