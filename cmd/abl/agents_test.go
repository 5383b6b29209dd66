package main

import (
	"errors"
	"strings"
	"testing"
)

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
