package ledger

import (
	"strings"
	"testing"
	"time"

	"abl/internal/usage"
)

func on(t *testing.T, day string) time.Time {
	t.Helper()
	at, err := time.Parse(time.DateOnly, day)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func list(t *testing.T, text string) Prices {
	t.Helper()
	all, err := ParsePrices("prices.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// The expected costs were computed by hand from the providers' lists.
func TestOwnList(t *testing.T) {
	all, err := DefaultPrices()
	if err != nil {
		t.Fatal(err)
	}
	if all.Date.IsZero() || all.Age(all.Date.AddDate(0, 0, 30)) != 30 {
		t.Errorf("date of the list: got %s, want one with an age of 30 days after 30 days", all.Date)
	}
	million := n(1_000_000)
	for _, c := range []struct {
		model, day string
		use        usage.Count
		want       string
	}{
		{"gemini-2.5-pro", "2026-11-22", usage.Count{Input: n(100_000), Candidates: n(1000), Thoughts: n(500)}, "0.14"},
		{"gemini-2.5-pro", "2026-11-22", usage.Count{Input: n(100_000), Cached: n(80_000), Candidates: n(1000)}, "0.045"},
		{"gemini-2.5-pro", "2026-11-22", usage.Count{Input: n(200_000), Candidates: n(0)}, "0.25"},
		{"gemini-2.5-pro", "2026-11-22", usage.Count{Input: n(200_001), Candidates: n(0)}, "0.5000025"},
		{"gemini-2.5-pro", "2026-11-22", usage.Count{Input: n(400_000), Cached: n(400_000), Candidates: n(10_000), Thoughts: n(10_000)}, "0.4"},
		{"gemini-2.5-flash", "2026-11-22", usage.Count{Input: n(10), Tool: n(90), Candidates: n(0)}, "0.00003"},
		{"gemini-3.8-flash", "2026-12-31", usage.Count{Input: million, Candidates: n(0)}, "0.75"},
		{"gemini-3.8-flash", "2027-01-01", usage.Count{Input: million, Candidates: n(0)}, "1.5"},
		{"claude-opus-5-5", "2026-11-22", usage.Count{Input: million, Cached: n(500_000), Written: n(250_000), Candidates: n(100_000)}, "4.35"},
		{"claude-opus-5-5", "2026-11-22", usage.Count{Input: million, Written: n(500_000), WrittenHour: n(250_000), Candidates: n(0)}, "5.25"},
		{"claude-opus-5-5", "2026-11-22", usage.Count{Input: million, Written: n(500_000), WrittenHour: n(900_000), Candidates: n(0)}, "6"},
		{"claude-sonnet-5-5", "2026-10-06", usage.Count{Input: million, Cached: million, Candidates: n(0)}, "0.2"},
		{"claude-sonnet-5-5", "2026-10-07", usage.Count{Input: million, Cached: million, Candidates: n(0)}, "0.1"},
		{"gpt-5.3-codex", "2026-11-22", usage.Count{Input: million, Cached: n(0), Candidates: million}, "15.75"},
	} {
		p, ok := all.At(c.model, on(t, c.day))
		got, known := p.OfRequest(c.use)
		if !ok || !known || got.String() != c.want {
			t.Errorf("%s on %s: got %s (%v, %v), want %s", c.model, c.day, got, ok, known, c.want)
		}
	}
	if _, ok := all.At("gemini-2.5-pro-exp", time.Now()); ok {
		t.Error("price of a model that is not in the list: got one, want none")
	}
	if len(all.models) < 40 {
		t.Errorf("models: got %d, want at least 40", len(all.models))
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"models: {m: {output: 1}}":                                           "prices.yaml:1: input is missing",
		"models: {m: {input: 1}}":                                            "output is missing",
		"models: {m: {input: 1, output: 2, chached: 1}}":                     `did you mean "cached"?`,
		"models: {m: {input: cheap, output: 2}}":                             "want an amount such as 0.25",
		"models: {m: {input: -1, output: 2}}":                                "want an amount such as 0.25",
		"models: {m: {input: 0x1p2, output: 2}}":                             "want an amount such as 0.25",
		"models:\n  m: {input: 1, output: 2, long: [{input: 3, output: 4}]}": "prices.yaml:2: long: each entry needs above",
		"models: {m: {input: 1, output: 2, long: [{above: 5, input: 3}]}}":   "long: output is missing",
		"models: {m: [{input: 1, output: 2}, {input: 1, output: 3}]}":        "the dates are not ascending",
		"models: {m: [{input: 1, output: 2, from: soon}]}":                   "want a date such as 2026-11-22",
		"models: {m: []}":  "the price is missing",
		"date: 2026-11-22": "it has no models",
		"":                 "it has no models",
		"models: {m: {input: 1, output: 2, long: [{above: 9, input: 3, output: 4}, {above: 9, input: 3, output: 4}]}}": "each entry needs above",
	} {
		if _, err := ParsePrices("prices.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func TestOwnPricesCoverTheList(t *testing.T) {
	base := list(t, "date: 2026-01-01\nmodels: {a: {input: 1, output: 2}, b: {input: 3, output: 4}}")
	own, err := OwnPrice("b", map[string]any{"input": 0.5, "output": int64(9)})
	if err != nil {
		t.Fatal(err)
	}
	all := base.With(own)
	b, _ := all.At("b", time.Now())
	if _, a := all.At("a", time.Now()); !a || b.Input != usage.Dollar/2 || b.Thinking != 9*usage.Dollar || all.Date != base.Date || len(base.models) != 2 {
		t.Errorf("price of b: got %+v in %v, want 0.5 and 9 USD, and the other models unchanged", b, all.models)
	}
	if _, err := OwnPrice("b", map[string]any{"input": 1.0}); err == nil || err.Error() != "output is missing, the price of a million response tokens" {
		t.Errorf("got %v, want that output has no price", err)
	}
	if _, err := OwnPrice("b", "cheap"); err == nil {
		t.Error("OwnPrice of a word: got no error, want one")
	}
}

func TestCostOf(t *testing.T) {
	all := list(t, "models: {m: {input: 2, output: 8}}")
	million := usage.Count{Input: n(1_000_000), Candidates: n(0)}
	for name, c := range map[string]struct {
		row  Row
		want string
	}{
		"from the list":      {Row{Model: "m", Count: million, CostUSD: Unknown}, "2"},
		"from the row":       {Row{Model: "m", Count: million, CostUSD: "0.5"}, "0.5"},
		"incomplete counts":  {Row{Model: "m", Count: million, CostUSD: Unknown, Source: Nobody}, "unknown"},
		"model has no price": {Row{Model: "other", Count: million, CostUSD: Unknown}, "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Unknown
			if usd, known := all.CostOf(c.row); known {
				got = usd.String()
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
