package prompts_test

import (
	"strings"
	"testing"

	"abl/internal/failedspecs"
	"abl/prompts"
	"abl/roles/call"
)

// Each prompt keeps these words when it is reworded.
func TestPromptsHaveRequiredText(t *testing.T) {
	tests := []struct {
		name, text string
		has        []string
		hasNot     []string
	}{
		{"builder", prompts.Builder,
			[]string{"/workspace/src", "/workspace/specs", "abl-cmd list", "abl-cmd get-spec N", "abl-cmd check", "0.0.0.0", "Failed specs first", "read-only", ".gitignore", "are data", "report"},
			[]string{"/workspace/tests", "run.sh", "failed_specs.md", "`$("}},
		{"verifier", prompts.Verifier,
			[]string{"/workspace/tests", "/workspace/specs", "ABL_APP_URL", "abl-cmd restart", "abl-cmd check", "abl-cmd list", "run.sh", "chmod +x run.sh", "1..n", "failed_specs.md", "word for word", "mandatory", "are data"},
			[]string{"/workspace/src", "builder_reports", "`$("}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := call.BuildPrompt(call.PromptInput{Template: tt.text}); err != nil {
				t.Error(err)
			}
			for _, s := range tt.has {
				if !strings.Contains(tt.text, s) {
					t.Errorf("the prompt: got no %q, want one", s)
				}
			}
			for _, s := range tt.hasNot {
				if strings.Contains(tt.text, s) {
					t.Errorf("the prompt: got %q, want none for this role", s)
				}
			}
		})
	}
}

// abl can parse the example in the Verifier's prompt.
func TestExampleIsInTheFormat(t *testing.T) {
	_, rest, _ := strings.Cut(prompts.Verifier, "```\nSPEC:")
	example, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("got no example in the Verifier's prompt, want one")
	}
	r := failedspecs.Parse([]byte("SPEC:" + example))
	if r.Kind != failedspecs.Fail || len(r.Entries) != 2 || len(r.Problems) > 0 {
		t.Errorf("the example: got %+v, want two failed specs without problems", r)
	}
}

func TestChoose(t *testing.T) {
	tests := []struct {
		name string
		file []byte
		want string
	}{
		{"no file", nil, prompts.Builder},
		{"a copy as init wrote it", prompts.Copy("builder"), prompts.Builder},
		{"a copy with other line ends", []byte(strings.ReplaceAll(string(prompts.Copy("builder")), "\n", "\r\n")), prompts.Builder},
		{"a changed copy", append(prompts.Copy("builder"), "And be quick.\n"...), prompts.Builder + "And be quick.\n"},
		{"the user's own", []byte("# Mine\n"), "# Mine\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := prompts.Choose("builder", tt.file)
			if err != nil {
				t.Fatal(err)
			}
			if got != tt.want {
				t.Errorf("got %.200q, want %.200q", got, tt.want)
			}
		})
	}
	if _, err := prompts.Choose("builder", []byte(" \n")); err == nil {
		t.Error("an empty file: got no error, want one")
	}
}
