package model_test

import (
	"slices"
	"strings"
	"testing"

	"abl/roles/model"
)

func TestOf(t *testing.T) {
	const list = "# newer ones\n\nmine  gemini\r\nft:gpt-5:me openai\nvendor/model openai-chat\ngpt-6 openai-chat\nhouse anthropic\n"
	for name, want := range map[string]string{
		"gemini-9": "gemini", "claude-x": "anthropic", "gpt-5": "openai", "o3": "openai", "mine": "gemini", "ft:gpt-5:me": "openai",
		"vendor/model": "openai", "house": "anthropic", "opus": "", "x-gpt-5": "",
	} {
		t.Run(name, func(t *testing.T) {
			of, err := model.Of(name, "models", []byte(list))
			if err != nil || of.Name != want {
				t.Errorf("got %q, %v; want %q", of.Name, err, want)
			}
		})
	}
	for _, text := range []string{"gemini-3-pro\n", "x claud\n", "a b gemini\n", "../x gemini\n", "gemini\n"} {
		t.Run(text, func(t *testing.T) {
			const want = "models line 2: want a model and its provider (gemini, anthropic, openai, or openai-chat"
			if _, err := model.Of("gpt-5", "models", []byte("\n"+text)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
}

// The default models are those of the agents of a phase.
func TestDefaultModels(t *testing.T) {
	var got []string
	for _, p := range model.Providers() {
		got = append(got, p.Model)
	}
	if want := []string{flash, sonnet, sol}; !slices.Equal(got, want) || model.Default() != flash {
		t.Errorf("got %q, %q by default; want %q, %q", got, model.Default(), want, flash)
	}
}
