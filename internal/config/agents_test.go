package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Models of a file stay with the agent that they were written for.
func TestModelsStayWithTheirAgent(t *testing.T) {
	for _, tt := range []struct {
		file         string
		flags        map[string]string
		want, models string
		warned       int
	}{
		{"models: gemini-x\n", nil, "gemini gemini", "gemini-x | gemini-x", 0},
		{"models: gemini-x\n", map[string]string{"agent": "gemini"}, "gemini gemini", "gemini-x | gemini-x", 0},
		{"models: gemini-x\n", map[string]string{"agent": "claude"}, "claude claude", " | ", 2},
		{"models: {builder: gemini-x}\n", map[string]string{"agent.builder": "claude"}, "claude gemini", " | ", 1},
		{"models: {builder: a, verifier: b}\n", map[string]string{"agent.verifier": "codex"}, "gemini codex", "a | ", 1},
		{"models: {builder: a, verifier: b}\n", map[string]string{"agent": "claude", "agent.verifier": "gemini"}, "claude gemini", " | b", 1},
		{"models: a\n", map[string]string{"agent": "claude", "models": "c"}, "claude claude", "c | c", 0},
		{"agent: scripted\nmodels: a\n", map[string]string{"agent": "claude"}, "claude claude", "a | a", 0},
		{"agent: mine\nagents: {mine: {command: x, usage: usage, image: claude, provider: claude}}\nmodels: a\n", nil, "mine mine", "a | a", 0},
	} {
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, ".abl"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, ".abl/config.yaml"), []byte(tt.file), 0o644); err != nil {
			t.Fatal(err)
		}
		l, err := Load(dir, func(string) (string, bool) { return "", false }, tt.flags)
		if err != nil {
			t.Errorf("%q %v: got error %v, want none", tt.file, tt.flags, err)
			continue
		}
		models := strings.Join(l.Models.Builder, ",") + " | " + strings.Join(l.Models.Verifier, ",")
		if got := l.Agent.Builder + " " + l.Agent.Verifier; got != tt.want || models != tt.models || len(l.Warnings) != tt.warned {
			t.Errorf("%q %v: got agents %s, models %s, warnings %q, want %s, %s and %d warnings",
				tt.file, tt.flags, got, models, l.Warnings, tt.want, tt.models, tt.warned)
		}
		if tt.warned > 0 && !slices.ContainsFunc(l.Warnings, func(w string) bool { return strings.Contains(w, "(.abl/config.yaml:1)") }) {
			t.Errorf("warnings: got %q, want one with the place (.abl/config.yaml:1)", l.Warnings)
		}
	}
}
