package view

import (
	"strings"
	"testing"
	"time"

	"abl/internal/redact"
	"abl/internal/state"
	"abl/internal/wording"
)

// Events that start or end a phase or a call on unproven networks have a label.
func TestWeakNetworkIsShown(t *testing.T) {
	code := 0
	for _, e := range []state.Event{
		{Kind: state.PhaseStart, Phase: 1}, {Kind: state.CallStart, Agent: "gemini"}, {Kind: state.CallResume, Agent: "gemini"}, {Kind: state.Outcome, Exit: &code},
	} {
		for _, weak := range []bool{true, false} {
			e.Weak = weak
			if got := describe(e, &story{}).text; strings.Contains(got, "weak network") != weak {
				t.Errorf("weak %t: got %s, want the label of a weak network: %t", weak, got, weak)
			}
		}
	}
}

func TestClock(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0:00", 999 * time.Millisecond: "0:00", 61 * time.Second: "1:01", 59*time.Minute + 59*time.Second: "59:59",
		time.Hour: "1:00:00", 26*time.Hour + 3*time.Second: "26:00:03",
	} {
		if got := clock(d); got != want {
			t.Errorf("clock(%v) = %s, want %s", d, got, want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 12_345: "12,345", 999_950: "999,950", 1_234_567: "1,234,567"} {
		if got := wording.Thousands(n); got != want {
			t.Errorf("wording.Thousands(%d) = %s, want %s", n, got, want)
		}
	}
	for ms, want := range map[int64]string{0: "0.0s", 850: "0.8s", 9_940: "9.9s", 42_300: "42s", 61_000: "1:01"} {
		if got := span(ms); got != want {
			t.Errorf("span(%d) = %s, want %s", ms, got, want)
		}
	}
}

func TestCutKeepsToTheWidth(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{
		{"hello", 5, "hello"}, {"hello", 4, "hel…"}, {"hello", 1, "…"}, {"hello", 0, ""}, {"hello", -3, ""}, {"", 0, ""},
		{"漢字漢字", 8, "漢字漢字"}, {"漢字漢字", 7, "漢字漢…"}, {"漢字漢字", 6, "漢字…"}, {"漢", 1, "…"}, {"aé漢b", 4, "aé…"},
	} {
		got := cut(c.text, c.width)
		if got != c.want {
			t.Errorf("cut(%q, %d) = %q, want %q", c.text, c.width, got, c.want)
		}
	}
}

func FuzzCut(f *testing.F) {
	f.Add("writes 漢字.txt", 10)
	f.Add("\u0301\u0301\u0301", 2)
	f.Add("a\xffb", 2)
	f.Fuzz(func(t *testing.T, text string, width int) {
		got, sum := cut(text, width), 0
		for _, r := range got {
			sum += redact.Cells(r)
		}
		if got != "" && sum > max(width, 0) {
			t.Errorf("cut(%q, %d): got %q with %d columns, want at most %d", text, width, got, sum, max(width, 0))
		}
		if got != text && !strings.HasPrefix(text, strings.TrimSuffix(got, "…")) {
			t.Errorf("cut(%q, %d): got %q, want a beginning of the text", text, width, got)
		}
	})
}

func TestStatusAtEveryWidth(t *testing.T) {
	width := 0
	l := &lines{width: func() int { return width }, now: func() time.Time { return noon.Add(83 * time.Second) }}
	l.story = story{began: noon, phase: 12, iteration: 3, role: "verifier", doing: "runs tests/漢字/notes.test.sh and more"}
	for width = -1; width < 200; width++ {
		sum := 0
		for _, r := range l.status() {
			sum += redact.Cells(r)
		}
		if sum > max(width-1, 0) {
			t.Errorf("status at %d columns: got %d columns, want at most %d", width, sum, max(width-1, 0))
		}
	}
	for width, want := range map[int]string{
		121: "verifier  phase 12, iteration 3  1:23 > runs tests/漢字/notes.test.sh and more",
		22:  "verifier  phase 12, …",
		9:   "verifie…",
	} {
		l.width = func() int { return width }
		if got := l.status(); got != want {
			t.Errorf("width %d:\n got %s\nwant %s", width, got, want)
		}
	}
}

func TestOutcomeAlwaysHasText(t *testing.T) {
	code := func(n int) *int { return &n }
	for _, c := range []struct {
		e    state.Event
		want string
	}{
		{state.Event{Exit: code(0)}, "ended (0:00)"},
		{state.Event{Exit: code(0), Text: "phase 1 passed in iteration 2"}, "phase 1 passed in iteration 2 (0:00)"},
		{state.Event{Exit: code(3), Text: "stuck"}, "stuck (0:00, exit code 3)"},
		{state.Event{Exit: code(99)}, "ended (0:00, exit code 99)"},
		{state.Event{Verdict: "pass"}, "pass (0:00)"},
	} {
		c.e.Kind = state.Outcome
		if got := describe(c.e, &story{}).text; got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestPreparingIsShown(t *testing.T) {
	for want, e := range map[string]state.Event{
		"prepares: npm ci":         {Kind: state.Preparing, Text: "npm ci"},
		"prepared after 0.8s":      {Kind: state.Prepared, MS: 850},
		"is not prepared: it ends": {Kind: state.Prepared, MS: 850, Text: "it ends"},
	} {
		if got := describe(e, &story{}); got.who != "app" || got.text != want || (got.tone == bad) != (e.Text == "it ends") {
			t.Errorf("got %+v, want %q", got, want)
		}
	}
}
