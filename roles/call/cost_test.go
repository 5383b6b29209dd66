package call

import (
	"testing"

	"abl/internal/ledger"
	"abl/internal/usage"
	"abl/roles/agent"
)

// An unknown cost is "unknown", never empty or 0.
func TestCostOfUsage(t *testing.T) {
	n, none, usd := int64(5), int64(0), usage.Dollars(0.25)
	list, err := ledger.OwnPrice("known", map[string]any{"input": 400_000, "output": 1})
	if err != nil {
		t.Fatal(err)
	}
	r := &Runner{Prices: list}
	for want, u := range map[string]agent.Usage{
		"0.25":    {Model: "known", Count: usage.Count{Total: &n}, Cost: &usd},
		"2":       {Model: "known", Count: usage.Count{Input: &n, Candidates: &none, Total: &n}},
		"unknown": {Model: "other", Count: usage.Count{Total: &n}},
		"":        {Count: usage.Count{Total: &none}},
	} {
		if got := r.cost(u); got != want {
			t.Errorf("cost of %+v: got %q, want %q", u, got, want)
		}
	}
	for name, u := range map[string]agent.Usage{"a-part": {Model: "known", Count: usage.Count{Input: &n, Candidates: &none, Total: &n}, Part: true}, "no-count": {}, "a-part-of-nothing": {Count: usage.Count{Total: &none}, Part: true}} {
		t.Run(name, func(t *testing.T) {
			if got := r.cost(u); got != "unknown" {
				t.Errorf("cost: got %q, want unknown", got)
			}
		})
	}
	if got := (&Runner{}).cost(agent.Usage{Model: "known", Count: usage.Count{Total: &n}}); got != "unknown" {
		t.Errorf("cost without prices: got %q, want unknown", got)
	}
}
