package wording

import (
	"runtime"
	"strings"
	"testing"
)

func TestNear(t *testing.T) {
	known := []string{"agent", "agents", "app", "phase", "naïve", "run", "status", "--json"}
	for word, want := range map[string]string{
		"agnet": "agent", "AGENT": "agent", "agentss": "agents", "phaze": "phase", "ap": "app", "naive": "naïve", "phsae": "phase", "rn": "run", "statsu": "status", "--jsno": "--json", "größe": "",
		"verifier": "", "": "", "x": "", strings.Repeat("agent", 20): "",
	} {
		if got := Near(word, known); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
}

func TestPhrases(t *testing.T) {
	for got, want := range map[string]string{
		Cut("größer", 6): "größer", Cut("größer", 5): "größ…", Cut("", 3): "",
		Short("größer", 8): "größer", Short(strings.Repeat("a", 20), 16): "aaaaaa" + CutMark, Short("ab c "+strings.Repeat("ü", 9), 16): "ab c" + CutMark,
		OneLine(" a\r\n\tb  c\n"): "a b c",
		Count(0, "call"):          "0 calls", Count(1, "call"): "1 call", Count(2, "call"): "2 calls",
		Few(nil, 2, ", "): "", Few([]string{"a", "b"}, 2, ", "): "a, b", Few([]string{"a", "b", "c"}, 2, "; "): "a; b; and 1 more",
		OneOf(nil): "", OneOf([]string{"a"}): "a", OneOf([]string{"a", "b"}): "a or b", OneOf([]string{"a", "b", "c"}): "a, b or c",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// An agent may print 64 MiB on one line.
func TestCutReadsOnlyTheBeginning(t *testing.T) {
	text := strings.Repeat("ü", 8<<20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := Cut(text, 3)
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; got != "üü…" || used > 1<<20 {
		t.Errorf("cut text: got %q with %d bytes of memory, want %q with at most %d", got, used, "üü…", 1<<20)
	}
}

func TestDistanceLaws(t *testing.T) {
	words := []string{"", "a", "ab", "ba", "phase", "phsae", "pahse", "ünïcode", "costs"}
	for _, a := range words {
		for _, b := range words {
			ab, ba := distance([]rune(a), []rune(b)), distance([]rune(b), []rune(a))
			if ab != ba || (ab == 0) != (a == b) || ab > max(len([]rune(a)), len([]rune(b))) {
				t.Errorf("distance(%q, %q): got %d, and %d back, want equal ones, at most %d, 0 only for equal words",
					a, b, ab, ba, max(len([]rune(a)), len([]rune(b))))
			}
		}
	}
}
