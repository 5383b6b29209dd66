package environment

import (
	"fmt"
	"strings"
	"testing"

	"abl/internal/gateway"
	"abl/internal/usage"
	"abl/roles"

	"github.com/google/go-cmp/cmp"
)

func TestTraffic(t *testing.T) {
	n := func(n int64) *int64 { return &n }
	log := func(s gateway.Sum, ended bool) gateLog {
		return gateLog{Entries: []gateway.Entry{{Kind: gateway.Ended, Call: "c", Sum: &s}}, Ended: ended}
	}
	whole := usage.Count{Input: n(20), Candidates: n(4), Total: n(24)}
	part := usage.Count{Total: n(3)}
	const untold = " requests to m is unknown: the provider did not report all of their usage"
	const lost = "the gateway's log is incomplete: the cost of %d requests and of all after its newest line is unknown"
	some := gateway.Sum{
		Model:    "m",
		Requests: 1,
		Usage:    whole,
		Spent:    24,
	}
	over := some
	over.Over = "reached"
	for _, c := range []struct {
		name string
		log  gateLog
		want string
	}{
		{"an-answer", log(some, true), "m 24; 1 requests; charged 24"},
		{"an-answer-without-usage", log(gateway.Sum{
			Model:    "m",
			Requests: 2,
			Unknown:  1,
			Usage:    whole,
			Part:     part,
			Spent:    90,
		}, true), "m 24, m 3+?; 2 requests; charged 90; the cost of 1 of 2" + untold},
		{"only-such", log(gateway.Sum{
			Model:    "m",
			Requests: 1,
			Unknown:  1,
			Spent:    70,
		}, true), "m unknown; 1 requests; charged 70; the cost of 1 of 1" + untold},
		{"nothing-asked", log(gateway.Sum{}, true), " 0; 0 requests; charged 0"},
		{"killed", log(some, false), "m 24, m unknown; 1 requests; charged 24; " + fmt.Sprintf(lost, 0)},
		{"killed-with-requests-under-way", log(gateway.Sum{UnderWay: 2, Reserved: 100}, false),
			" unknown; 0 requests; charged 100; " + fmt.Sprintf(lost, 2)},
		{"ended-with-a-request-under-way", log(gateway.Sum{UnderWay: 1, Reserved: 50}, true),
			" unknown; 0 requests; charged 50"},
		{"gone", gateLog{}, " unknown; -1 requests; charged unknown"},
		{"over-the-budget", log(over, true), "m 24; 1 requests; charged 24; over: reached"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := trafficOf(c.log, "c")
			var models []string
			for _, u := range got.Usage {
				text := u.Model + " unknown"
				if u.Total != nil {
					text = fmt.Sprint(u.Model, " ", *u.Total)
					if u.Part {
						text += "+?"
					}
				}
				models = append(models, text)
			}
			text := fmt.Sprintf("%s; %d requests", strings.Join(models, ", "), got.Requests)
			if text += "; charged unknown"; got.Charged != nil {
				text = strings.TrimSuffix(text, "unknown") + fmt.Sprint(got.Charged.Tokens)
			}
			for _, note := range got.Notes {
				text += "; " + note
			}
			if got.Over != "" {
				text += "; over: " + got.Over
			}
			if text != c.want {
				t.Errorf("got %s, want %s", text, c.want)
			}
		})
	}
}

// A call with unknown usage counts as the rest of the budget, so that no budget grows.
func TestUnknownUseCountsAsAllThatWasLeft(t *testing.T) {
	n, usd := int64(100), usage.Dollars(5)
	known := roles.Charged{Tokens: 30, USD: new(usage.Dollars(4))}
	bounds := []gateway.Bound{
		{Of: "call", Tokens: &n, UsedTokens: 60},
		{Of: "phase", USD: &usd, UsedUSD: usage.Dollars(2)},
		{Of: "project", Tokens: &n},
	}
	for _, c := range []struct {
		name   string
		known  *roles.Charged
		bounds []gateway.Bound
		want   string
	}{
		{"unbounded", nil, nil, "nobody knows"},
		{"the tightest bound", nil, bounds, "40 tokens, 3 USD"},
		{"more was seen", &known, bounds, "40 tokens, 4 USD"},
		{"seen, unbounded", &known, nil, "30 tokens, 4 USD"},
		{"spent before", nil, []gateway.Bound{{Of: "call", USD: &usd, UsedUSD: usage.Dollars(6)}}, "0 tokens, 0 USD"},
	} {
		t.Run(c.name, func(t *testing.T) {
			known := c.known
			if known != nil {
				known = new(*known)
			}
			got := "nobody knows"
			if all := atMost(known, gateway.Budget{Bounds: c.bounds}); all != nil {
				got = fmt.Sprintf("%d tokens, %s USD", all.Tokens, all.USD)
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// Each line of a gateway's log counts as activity, and the requests to the model are listed.
func TestUsedByARunningCall(t *testing.T) {
	g := &Gate{}
	n := int64(7)
	for _, e := range []gateway.Entry{
		{Kind: gateway.Ready, Sum: &gateway.Sum{}},
		{Kind: gateway.Began, Req: &gateway.Request{Model: "m"}, Sum: &gateway.Sum{UnderWay: 1}},
		{
			Kind: gateway.Requested, Req: &gateway.Request{Model: "m"}, Usage: &usage.Count{Total: &n},
			Sum: &gateway.Sum{Requests: 1, Usage: usage.Count{Total: &n}},
		},
	} {
		g.sees(e)
	}
	want := roles.Used{Tokens: 7, Signs: 3, Requests: []string{"request to m, 7 tokens"}}
	if diff := cmp.Diff(&want, g.Used()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
