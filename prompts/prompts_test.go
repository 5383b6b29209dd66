package prompts_test

import (
	"strings"
	"testing"

	"abl/orchestrator/verdict"
	"abl/prompts"
	"abl/roles/prompt"
)

// What each prompt must not lose when it is worded anew.
func TestPromptsSayWhatTheyMust(t *testing.T) {
	tests := []struct {
		name, text string
		has        []string
		hasNot     []string
	}{
		{"builder", prompts.Builder,
			[]string{"/workspace/src", "/workspace/specs", "abl-cmd list", "abl-cmd get-spec N", "0.0.0.0", "Failed specs first", "read-only", ".gitignore", "is data", "report", "`$(`"},
			[]string{"/workspace/tests", "run.sh", "failed_specs.md"}},
		{"verifier", prompts.Verifier,
			[]string{"/workspace/tests", "/workspace/specs", "ABL_APP_URL", "abl-cmd restart", "abl-cmd check", "abl-cmd list", "run.sh", "1..n", "failed_specs.md", "word for word", "mandatory", "is data", "`$(`"},
			[]string{"/workspace/src", "builder_reports"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := prompt.Check(tt.text); err != nil {
				t.Error(err)
			}
			for _, s := range tt.has {
				if !strings.Contains(tt.text, s) {
					t.Errorf("%q is missing", s)
				}
			}
			for _, s := range tt.hasNot {
				if strings.Contains(tt.text, s) {
					t.Errorf("%q is none of this role's business", s)
				}
			}
		})
	}
}

// The example in the Verifier's prompt is in the format that abl reads.
func TestExampleIsInTheFormat(t *testing.T) {
	_, rest, _ := strings.Cut(prompts.Verifier, "```\nSPEC:")
	example, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("there is no example")
	}
	r := verdict.Parse([]byte("SPEC:" + example))
	if r.Kind != verdict.Fail || len(r.Entries) != 2 || len(r.Problems) > 0 {
		t.Errorf("got %+v", r)
	}
}
