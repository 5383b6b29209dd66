package roles

import (
	"testing"

	"abl/internal/prices"
	"abl/internal/tokens"
	"abl/roles/agent"
)

// What nobody knows is never told as nothing.
func TestCostOfUsage(t *testing.T) {
	n, none, usd := int64(5), int64(0), prices.Dollars(0.25)
	r := &Runner{Price: func(u agent.Usage) (prices.USD, bool) { return prices.Dollars(2), u.Model == "known" }}
	for want, u := range map[string]agent.Usage{
		"0.25":    {Model: "known", Count: tokens.Count{Total: &n}, Cost: &usd},
		"2":       {Model: "known", Count: tokens.Count{Total: &n}},
		"unknown": {Model: "other", Count: tokens.Count{Total: &n}},
		"":        {Count: tokens.Count{Total: &none}},
	} {
		if got := r.cost(u); got != want {
			t.Errorf("%+v costs %q, want %q", u, got, want)
		}
	}
	for name, u := range map[string]agent.Usage{"a-part": {Model: "known", Count: tokens.Count{Total: &n}, Part: true}, "nobody-told": {}, "a-part-of-nothing": {Count: tokens.Count{Total: &none}, Part: true}} {
		t.Run(name, func(t *testing.T) {
			if got := r.cost(u); got != "unknown" {
				t.Errorf("%s costs %q", name, got)
			}
		})
	}
	if got := (&Runner{}).cost(agent.Usage{Model: "known", Count: tokens.Count{Total: &n}}); got != "unknown" {
		t.Errorf("without prices it costs %q", got)
	}
}
