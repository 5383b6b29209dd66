package view

import (
	"bytes"
	"strings"
	"testing"
)

// One line stands at a time, no wider than the terminal, and none below other words.
func TestOneLine(t *testing.T) {
	var out bytes.Buffer
	l := &OneLine{out: &out, width: func() int { return 11 }}
	l.Show("step 1")
	l.Show("a step that is too long")
	l.Around(func() { out.WriteString("done\n") })
	l.Around(func() { out.WriteString("and done\n") })
	got := strings.NewReplacer(hideCursor, "", showCursor, "", clearLine, "<").Replace(out.String())
	if want := "<step 1<a step th…<done\nand done\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	var none *OneLine
	none.Around(func() { out.WriteString("safe") })
	if !strings.HasSuffix(out.String(), "safe") {
		t.Error("without a terminal nothing is said")
	}
	t.Setenv("TERM", "xterm")
	if NewOneLine(&out) != nil {
		t.Error("a buffer is taken for a terminal")
	}
}
