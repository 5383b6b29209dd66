package commit

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUnified(t *testing.T) {
	lines := func(s string) []string {
		if s != "" {
			s += " "
		}
		return split(strings.ReplaceAll(s, " ", "\n"))
	}
	for _, c := range []struct{ a, b, want string }{
		{"", "", ""},
		{"a b", "a b", ""},
		{"", "a b", "@@ -1,0 +1,2 @@|+a|+b"},
		{"a b", "", "@@ -1,2 +1,0 @@|-a|-b"},
		{"1 2 3 4 5 6 7 8 9", "1 2 3 4 x 6 7 8 9", "@@ -2,7 +2,7 @@| 2| 3| 4|-5|+x| 6| 7| 8"},
		{"1 2 3 4 5 6 7 8 9 a b c", "0 1 2 3 4 5 6 7 8 9 a b", "@@ -1,3 +1,4 @@|+0| 1| 2| 3@@ -9,4 +10,3 @@| 9| a| b|-c"},
	} {
		got := strings.ReplaceAll(strings.Join(unified(lines(c.a), lines(c.b)), "|"), "|@@ -", "@@ -")
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%q to %q (-want +got)\n%s", c.a, c.b, diff)
		}
	}
}

// A line end that is new is a change that can be seen.
func TestLineEndAtTheEnd(t *testing.T) {
	if got := strings.Join(unified(split("a\nb"), split("a\nb\n")), "|"); got != "@@ -1,2 +1,2 @@| a|-b (without a line end)|+b" {
		t.Error(got)
	}
}

// What is marked as kept and as gone is the old text, what is kept and new is the
// new one.
func TestCompareIsWhole(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	text := func() (all []string) {
		for range rng.IntN(20) {
			all = append(all, string(rune('a'+rng.IntN(4))))
		}
		return all
	}
	for range 500 {
		a, b := text(), text()
		var was, is []string
		for _, o := range compare(a, b) {
			if o.mark != '+' {
				was = append(was, o.text)
			}
			if o.mark != '-' {
				is = append(is, o.text)
			}
		}
		if !cmp.Equal(a, was) || !cmp.Equal(b, is) {
			t.Fatalf("%q to %q: %q to %q", a, b, was, is)
		}
	}
}
