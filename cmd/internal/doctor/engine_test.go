package doctor

import (
	"errors"
	"os"
	"strings"
	"testing"

	"abl/images"
	"abl/roles/agent"
)

// docs/agents.md has a row for each agent that has a program, and it is true.
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
			t.Errorf("%s, with the image %s, is not there", name, a.Image)
		}
		for _, want := range []string{" " + images.Version(name) + " |", "| " + a.DefaultModel + " |", "| `" + vars.KeyVar + "` |", "| `" + vars.BaseVar + "`"} {
			if !strings.Contains(row, want) {
				t.Errorf("the row of %s lacks %q: %s", name, want, row)
			}
		}
	}
}

func TestJudgeAgent(t *testing.T) {
	for _, c := range []struct {
		words string
		err   error
		ok    bool
		text  string
	}{
		{"1.0.102\n", nil, true, "version 1.0.102 answers"},
		{"GitHub Copilot CLI 1.0.102.\nRun it.\n", nil, true, "version 1.0.102 answers"},
		{"codex-cli 1.0.102", nil, true, "version 1.0.102 answers"},
		{"1.0.102-nightly.3 (x)", nil, false, "version 1.0.102-nightly.3, and abl knows 1.0.102"},
		{"2.0.0", nil, false, "version 2.0.0"},
		{"", nil, false, "without a version"},
		{"1.0.102", errors.New("it ended with code 127"), false, "does not answer: it ended"},
	} {
		f := judgeAgent("copilot", "1.0.102", c.words, c.err)
		if f.OK != c.ok || !strings.Contains(f.Text, c.text) || !f.OK && f.Hint == "" {
			t.Errorf("%q: %+v", c.words, f)
		}
	}
}
