package agent

import (
	"slices"
	"strings"
	"testing"
)

// Each CLI gets abl's word in its own form.
func TestEffort(t *testing.T) {
	const defaults = `{"modelConfigs":{"customOverrides":[{"match":{"model":"%M"},"modelConfig":{"generateContentConfig":{"thinkingConfig":{%T}}}}]}}`
	gemini := func(model, thinking string) string {
		return strings.NewReplacer("%M", model, "%T", thinking).Replace(defaults)
	}
	for _, c := range []struct {
		agent, model, word string
		want               string // in the command line, the environment or a file
	}{
		{"claude", "claude-sonnet-5-5", "low", "--effort low"},
		{"claude", "claude-sonnet-5-5", "max", "--effort max"},
		{"claude", "vendor/model", "high", "--effort high"},
		{"claude", "claude-sonnet-4-6", "high", "--effort high"},
		{"claude", "claude-sonnet-4-5", "low", "MAX_THINKING_TOKENS=4096"},
		{"claude", "claude-sonnet-4-5-20250929", "medium", "MAX_THINKING_TOKENS=16384"},
		{"claude", "claude-opus-4-1", "max", "MAX_THINKING_TOKENS=31999"},
		{"codex", "gpt-6.1-sol", "medium", `-c model_reasoning_effort="medium"`},
		{"codex", "gpt-6.1-sol", "max", `-c model_reasoning_effort="max"`},
		{"codex", "gpt-5.6-luna", "max", `-c model_reasoning_effort="max"`},
		{"codex", "gpt-5.5", "max", `-c model_reasoning_effort="xhigh"`},
		{"codex", "gpt-5.1", "max", `-c model_reasoning_effort="high"`},
		{"codex", "qwen3-coder", "max", `-c model_reasoning_effort="high"`},
		{"copilot", "gpt-5.1", "high", "--effort high"},
		{"copilot", "gpt-6.1-sol", "max", "--effort max"},
		{"gemini", "gemini-3.8-flash", "low", gemini("gemini-3.8-flash", `"thinkingLevel":"LOW"`)},
		{"gemini", "gemini-3.1-pro-preview", "max", gemini("gemini-3.1-pro-preview", `"thinkingLevel":"HIGH"`)},
		{"gemini", "gemini-2.5-pro", "medium", gemini("gemini-2.5-pro", `"thinkingBudget":8192`)},
		{"gemini", "gemini-2.5-pro", "max", gemini("gemini-2.5-pro", `"thinkingBudget":32768`)},
		{"gemini", "gemini-2.5-flash", "max", gemini("gemini-2.5-flash", `"thinkingBudget":24576`)},
	} {
		t.Run(c.agent+" "+c.model+" "+c.word, func(t *testing.T) {
			a, err := Find(c.agent)
			if err != nil {
				t.Fatal(err)
			}
			if word, err := a.EffortOf(c.model, c.word, true); word != c.word || err != nil {
				t.Errorf("got the word %q, %v, want %q", word, err, c.word)
			}
			with, without := all(t, a, Call{Model: c.model, Effort: c.word}), all(t, a, Call{Model: c.model})
			if !strings.Contains(with, c.want) || strings.Contains(without, c.want) {
				t.Errorf("got\n%s\nwant %s, and without an effort nothing of it:\n%s", with, c.want, without)
			}
		})
	}
}

// all returns a command with its environment and files as one text.
func all(t *testing.T, a Agent, c Call) string {
	t.Helper()
	cmd, err := a.Command(c)
	if err != nil {
		t.Fatal(err)
	}
	lines := []string{strings.Join(cmd.Argv, " ")}
	for name, value := range cmd.Env {
		lines = append(lines, name+"="+value)
	}
	for name, data := range cmd.Files {
		if !slices.Contains(lines, "GEMINI_CLI_SYSTEM_DEFAULTS_PATH=/abl/in/"+name) {
			t.Errorf("variables and files: got %.300q, want GEMINI_CLI_SYSTEM_DEFAULTS_PATH=/abl/in/%s in them",
				lines, name)
		}
		lines = append(lines, string(data))
	}
	return strings.Join(lines, "\n")
}

// A default effort that a model may refuse is omitted. An effort that the user set is passed on.
func TestEffortOfAnOddModel(t *testing.T) {
	for _, c := range []struct {
		agent, model string
		chosen       bool
		want         string
	}{
		{"codex", "qwen3-coder", false, ""},
		{"codex", "qwen3-coder", true, "high"},
		{"copilot", "gpt-4.1", false, ""},
		{"copilot", "gpt-5.1", false, "high"},
		{"copilot", "o3", false, "high"},
		{"gemini", "gemini-2.0-flash", false, ""},
		{"gemini", "gemini-2.0-flash", true, `cannot use the effort "high" with the model "gemini-2.0-flash" of gemini: abl has no value for it`},
		{"scripted", "any", true, ""},
		{"claude", "any", false, "high"},
	} {
		a, err := Find(c.agent)
		if err != nil {
			t.Fatal(err)
		}
		got, err := a.EffortOf(c.model, "high", c.chosen)
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s with %s, chosen %t: got %q, want %q", c.agent, c.model, c.chosen, got, c.want)
		}
	}
}
