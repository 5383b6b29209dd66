package orchestrator

import (
	"context"
	"strings"
	"testing"

	"abl/internal/failedspecs"
	"abl/internal/redact"
	"abl/internal/state"
	"abl/prompts"
	"abl/roles"
	"abl/roles/agent"
	"abl/roles/app"
)

// A prompt contains no secrets and no invisible characters from any source.
func TestPromptsAreSafe(t *testing.T) {
	const key, evil = "sesame-open-4711", "\x1b[2J\u202e\U000e0041\u200b\u3164"
	tmpl, err := prompts.Choose(roles.Builder.Name, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &RoleJobs{
		Number: 1, Project: state.NewProject(t.TempDir(), "src", "tests"), Safe: &redact.Sanitizer{},
		Specs:   specs(t, ""),
		Players: map[string]Player{"builder": {Agent: agent.Scripted(agent.Scenario{}, "", agent.Provider{}), Template: tmpl}},
		Files: map[string]Files{"builder": func(context.Context, int) ([]string, error) {
			return []string{"a/" + key + evil, "b"}, nil
		}},
	}
	c.Safe.Hide(key)
	p := state.Phase{Iteration: 1, Step: 1, Attempt: 1, Judged: state.Judged{Failed: []failedspecs.Entry{failedspecs.Sanitize(failedspecs.Entry{Spec: "a" + evil, Input: key, Observed: "c"})}}}
	text, shown, err := c.Prompt(t.Context(), roles.Builder, p, app.Up{Failed: "app.prepare ended with exit code 3"})
	if err != nil {
		t.Fatal(err)
	}
	if want := "- Dependencies may be missing: app.prepare ended with exit code 3.\n"; !strings.Contains(text, want) {
		t.Errorf("prompt: got %q, want %q in it", text, want)
	}
	for what, got := range map[string]string{"prompt": text, "map": shown.String()} {
		t.Run(what, func(t *testing.T) {
			if strings.Contains(got, key) || strings.ContainsAny(got, evil[:1]+evil[4:]) || !strings.Contains(got, "[secret …11]") {
				t.Errorf("%s: got %q, want the secret replaced and no control characters", what, got)
			}
		})
	}
}
