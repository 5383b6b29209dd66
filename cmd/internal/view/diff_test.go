package view

import (
	"errors"
	"io"
	"math/rand"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestDiff(t *testing.T) {
	text := func(s string) *string { return &s }
	for name, c := range map[string]struct {
		from, to *string
		want     string
	}{
		"changed": {text("a\nb\n"), text("a\nc\n"), "diff a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"},
		"new":     {nil, text("a\n"), "diff /dev/null b/x\n--- /dev/null\n+++ b/x\n@@ -0,0 +1,1 @@\n+a\n"},
		"gone":    {text("a"), nil, "diff a/x /dev/null\n--- a/x\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-a\n\\ No newline at end of file\n"},
		"empty":   {nil, text(""), "diff /dev/null b/x\n"},
		"same":    {text("a"), text("a"), "diff a/x b/x\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var plain, coloured strings.Builder
			if err := errors.Join(Diff(&plain, "x", c.from, c.to, false), Diff(&coloured, "x", c.from, c.to, true)); err != nil {
				t.Fatal(err)
			}
			if plain.String() != c.want {
				t.Errorf("diff: got\n%s\nwant\n%s", plain.String(), c.want)
			}
			if got := regexp.MustCompile(`\x1b\[\d*m`).ReplaceAllString(coloured.String(), ""); got != c.want {
				t.Errorf("diff without its colours: got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// A diff of texts that are hard to compare ends.
func TestDiffEnds(t *testing.T) {
	hard := func(seed int64) *string {
		var b strings.Builder
		for _, n := range rand.New(rand.NewSource(seed)).Perm(200_000) {
			b.WriteString(strconv.Itoa(n) + "\n")
		}
		text := b.String()
		return &text
	}
	done := make(chan error, 1)
	go func() { done <- Diff(io.Discard, "a", hard(1), hard(2), false) }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("hard diff: got none after 20 seconds, want one")
	}
}
