package prompts_test

import (
	"strings"
	"testing"

	"abl/orchestrator/codecommit"
	"abl/prompts"
)

// Each part keeps these words when it is reworded.
func TestCommitPromptsHaveRequiredText(t *testing.T) {
	list := []string{".gitignore", "anything in a folder named .git"}
	instructions := prompts.CommitInstructions(list)
	for _, c := range []struct {
		name, text string
		has        []string
	}{
		{"structure", prompts.CommitStructure, []string{"build.sh", "UserSpecification.md"}},
		{"instructions", instructions, []string{
			"expert software developer", "agentic", "scripts", "no comments", "another model", "**complete**", "^^^end", "^^^delete", "does not exist yet", "is empty",
			"idiomatic", "every error", "test", "good practice", "secure", "+ .gitignore\n+ anything in a folder named .git\n", "..",
		}},
		{"initial", prompts.CommitInitial, []string{"query", "parts of the", "builds", "without a warning", "file replacements", "quality"}},
		{"repair", prompts.CommitRepair, []string{"output of the build", "query", "codebase", "new", "gone", "replaced", "broken"}},
		{"consistency", prompts.Consistency, []string{
			"expert software developer", "may be empty", "something else", "part", "UserSpecification.md", "80 characters", "essay", "never looked at",
			"\nUser Specification Self Consistency\nImplementation Consistency with User Specification\nErrors and Mistakes within the User Specification\nErrors and Mistakes within the Implementation\nSuggestions and Other Important Commentary\n",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			flat := strings.Join(strings.Fields(c.text), " ")
			for _, s := range c.has {
				if !strings.Contains(c.text, s) && !strings.Contains(flat, s) {
					t.Errorf("the prompt: got no %q, want one", s)
				}
			}
			if strings.Contains(c.text, "<<") {
				t.Errorf("the prompt: got %q, want no placeholder", "<<")
			}
			for line := range strings.Lines(c.text) {
				if len(line) > 82 {
					t.Errorf("got a line of %d bytes, want at most 82", len(line))
				}
			}
		})
	}
	a, err := codecommit.ParseAnswer(instructions, false)
	if edits := a.Edits; err != nil || len(edits) != 2 || edits[0].Content != "Good morning.\nGood night.\n" || !edits[1].Delete {
		t.Errorf("the examples: got %v, %v, want two edits", a.Edits, err)
	}
}
