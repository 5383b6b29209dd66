package scaffold

import (
	"strings"
	"testing"

	"abl/internal/detect"
)

// Text of a repository stays on its line of config.yaml and contains no control characters.
func TestSettingsAreClean(t *testing.T) {
	hostile := "a\x1b[31m\nnotify: {command: touch}\x00"
	s := settings{kind: "http", repo: "."}
	s.Facts = []detect.Fact{
		{Key: "app.command", Value: hostile, From: detect.Source{File: hostile, Place: hostile}, Note: hostile},
		{Key: "app.port", Value: "1"},
		{Key: "app.env.A", Value: hostile},
		{Key: "builder_commands.test", Value: hostile, Note: hostile},
	}
	s.Open = []detect.Open{{Key: "toolchain.go", Why: hostile, Choices: s.Facts[:1]}}
	got := s.render()
	if strings.ContainsAny(got, "\x1b\x00") || strings.Contains(got, "\nnotify") {
		t.Errorf("settings: got\n%q\nwant no control characters and no key of the repository", got)
	}
}
