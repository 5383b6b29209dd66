package money

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"abl/cmd/internal/exit"
	"abl/internal/config"
	"abl/internal/gateway"
	"abl/internal/ledger"
	"abl/internal/outcome"
	"abl/internal/state"
	"abl/internal/usage"
	"abl/roles"
	"abl/roles/agent"
)

// accounts returns a project with these rows in its ledger.
func accounts(t *testing.T, rows ...ledger.Row) (state.Project, ledger.Prices) {
	t.Helper()
	root, err := state.Real(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	list, err := Prices(root, &config.Loaded{Config: config.Default()})
	if err != nil {
		t.Fatal(err)
	}
	p := state.NewProject(root, "src", ".abl/tests")
	if err := os.MkdirAll(filepath.Dir(p.Ledger()), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := ledger.Open(p.Ledger()).Append(rows); err != nil {
		t.Fatal(err)
	}
	return p, list
}

// used is a row of gemini-2.5-pro, of which a million prompt tokens cost 1.25 USD.
func used(call, source, cost string, tokens int64, outcome outcome.Outcome) ledger.Row {
	phase, _, _ := strings.Cut(strings.TrimPrefix(call, "p"), "-")
	r := ledger.Row{Timestamp: ledger.Stamp(time.Now()), Phase: phase, Model: "gemini-2.5-pro", CallID: call, Source: source, CostUSD: cost, Outcome: string(outcome)}
	if source != ledger.Nobody {
		none := int64(0)
		r.Input, r.Candidates, r.Total = &tokens, &none, &tokens
	}
	return r
}

func (s Spending) String() string {
	return fmt.Sprintf("%d tokens, %s USD, %d unknown, unpriced %v", s.Tokens, s.USD, s.Unknown, s.Models())
}

func TestSpent(t *testing.T) {
	other := used("p1-build-1.1", ledger.CLI, ledger.Unknown, 7, outcome.Done)
	other.Model = "my-model"
	for name, c := range map[string]struct {
		rows []ledger.Row
		want string
	}{
		"nothing":         {nil, "call 0 tokens, 0 USD, 0 unknown, unpriced []; phase 0 tokens, 0 USD, 0 unknown, unpriced []"},
		"as-the-rows-say": {[]ledger.Row{used("p1-build-1.1", ledger.Gateway, "0.5", 100, outcome.Done), used("p2-build-1.1", ledger.Gateway, "9", 1, outcome.Done)}, "call 0 tokens, 0 USD, 0 unknown, unpriced []; phase 100 tokens, 0.5 USD, 0 unknown, unpriced []"},
		"more-than-fits": {[]ledger.Row{used("p1-build-1.1", ledger.Gateway, "9223372036", math.MaxInt64, outcome.Done), used("p1-build-2.1", ledger.Gateway, "9223372036", 1, outcome.Done)},
			"call 0 tokens, 0 USD, 0 unknown, unpriced []; phase 9223372036854775807 tokens, 9223372036.854775807 USD, 0 unknown, unpriced []"},
		"by-a-price-that-came-later": {[]ledger.Row{used("p1-build-1.1", ledger.CLI, ledger.Unknown, 100_000, outcome.Done)}, "call 0 tokens, 0 USD, 0 unknown, unpriced []; phase 100000 tokens, 0.125 USD, 0 unknown, unpriced []"},
		"too-long-for-one-price":     {[]ledger.Row{used("p1-build-1.1", ledger.CLI, ledger.Unknown, 300_000, outcome.Done)}, "call 0 tokens, 0 USD, 0 unknown, unpriced []; phase 300000 tokens, 0 USD, 0 unknown, unpriced [gemini-2.5-pro]"},
		"a-model-without-a-price":    {[]ledger.Row{other}, "call 0 tokens, 0 USD, 0 unknown, unpriced []; phase 7 tokens, 0 USD, 0 unknown, unpriced [my-model]"},
		"a-repeated-attempt": {[]ledger.Row{used("p1-build-2.1", ledger.Gateway, "0.5", 100, outcome.OverBudget), used("p1-build-2.2", ledger.Gateway, "1", 10, outcome.Done), used("p1-build-22.1", ledger.Gateway, "2", 1, outcome.Crashed)},
			"call 100 tokens, 0.5 USD, 0 unknown, unpriced []; phase 111 tokens, 3.5 USD, 0 unknown, unpriced []"},
		"what-was-charged-where-nobody-told": {[]ledger.Row{used("p1-build-1.1", ledger.Gateway, "0.5", 100, outcome.Done), used("p1-build-1.1", ledger.Nobody, "", 0, outcome.Done)},
			"call 0 tokens, 0 USD, 0 unknown, unpriced []; phase 5000 tokens, 0.75 USD, 0 unknown, unpriced []"},
		"what-nobody-knows": {[]ledger.Row{used("p1-verify-9.1", ledger.Nobody, "", 0, outcome.Lost), used("../../x", ledger.Nobody, "", 0, outcome.Lost)}, "call 0 tokens, 0 USD, 0 unknown, unpriced []; phase 0 tokens, 0 USD, 1 unknown, unpriced []"},
	} {
		t.Run(name, func(t *testing.T) {
			p, list := accounts(t, c.rows...)
			usd := usage.Dollar * 3 / 4
			rec := roles.Record{Dir: p.Call("p1-build-1.1")}
			if err := os.MkdirAll(rec.Dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := rec.SaveOutcome(roles.Outcome{Key: "p1-build-1.1", Usage: []agent.Usage{}, Charged: &roles.Charged{Tokens: 5000, USD: &usd}}); err != nil {
				t.Fatal(err)
			}
			got, err := Spent(p, list, 1, "p1-build-2.3")
			if err != nil {
				t.Fatal(err)
			}
			if text := fmt.Sprintf("call %s; phase %s", got.Call, got.Phase); text != c.want {
				t.Errorf("got %s, want\n%s", text, c.want)
			}
		})
	}
}

func TestCapsAdmit(t *testing.T) {
	usd := func(f float64) usage.USD { return usage.Dollars(f) }
	for _, c := range []struct {
		cap  config.Cap
		used Spending
		code int
		text string // of the error, or of the warning
	}{
		{config.Cap{USD: 5}, Spending{USD: usd(3.9)}, 0, ""},
		{config.Cap{USD: 5}, Spending{USD: usd(4)}, 0, "80 % of the budget of this phase is spent: 4.00 of 5 USD"},
		{config.Cap{Tokens: 5, USD: 9}, Spending{Tokens: 4, USD: usd(8)}, 0, "80 % of the budget of this phase is spent: 4 of 5 tokens; 88 % of the budget of this phase is spent: 8.00 of 9 USD"},
		{config.Cap{USD: 5}, Spending{USD: usd(5.2)}, exit.Budget, "the budget is reached: 5.20 of 5 USD of the phase are spent; everything is committed"},
		{config.Cap{Tokens: 10}, Spending{Tokens: 8, Unpriced: map[string]bool{"m": true}}, 0, "80 % of the budget of this phase is spent: 8 of 10 tokens"},
		{config.Cap{Tokens: 10}, Spending{Tokens: 10}, exit.Budget, "the budget is reached: 10 of 10 tokens of the phase are used; everything is committed"},
		{config.Cap{USD: 5}, Spending{Unpriced: map[string]bool{"m": true}}, exit.Usage, "cannot enforce a budget in US dollars: models without a price were used: m"},
	} {
		l := Cap{"phase", c.cap, c.used}
		err := l.Check(Words{"abl phase 1", "everything is committed"})
		text := strings.Join(l.Warnings(), "; ")
		if err != nil {
			text = err.Error()
			if over := strings.Join(l.Warnings(), "; "); len(c.used.Unpriced) == 0 && !strings.HasPrefix(over, "the budget of this phase is used up: ") {
				t.Errorf("%+v, %s: got the warning %q, want that the budget is used up", c.cap, c.used, over)
			}
		}
		if exit.Code(err) != c.code || text != c.text {
			t.Errorf("%+v, %s: got %d %q, want %d %q", c.cap, c.used, exit.Code(err), text, c.code, c.text)
		}
	}
}

// Usage that the agent counted is priced when it is added to the ledger.
func TestEnteredRowsArePriced(t *testing.T) {
	p, list := accounts(t)
	b := Book{Ledger: ledger.Open(p.Ledger()), List: list, Hide: func(s string) string { return s }, Note: func(string) {}}
	nobody := used("p1-build-1.1", ledger.Nobody, ledger.Unknown, 5, outcome.Done)
	if err := b.Append([]ledger.Row{used("p1-build-1.1", ledger.CLI, ledger.Unknown, 200_000, outcome.Done), used("p1-build-2.1", ledger.CLI, ledger.Unknown, 200_001, outcome.Done), nobody}); err != nil {
		t.Fatal(err)
	}
	var costs []string
	if err := b.Scan(func(r ledger.Row) { costs = append(costs, r.CostUSD) }, func(int, string) {}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(costs, " "); got != "0.25 unknown unknown" {
		t.Errorf("costs: got %s, want 0.25 unknown unknown", got)
	}
}

// While a call runs abl warns once that a cap is nearly spent, and once that it is spent.
func TestACallThatNearsItsCap(t *testing.T) {
	var said []string
	a := Account{
		Conf: &config.Loaded{}, Note: func(text string) { said = append(said, text) },
		Used: func(string) (Spendings, error) {
			return Spendings{Phase: Spending{Tokens: 50, USD: usage.Dollars(1)}}, nil
		},
	}
	a.Conf.Budget.Phase = config.Cap{Tokens: 100, USD: 10}
	if _, err := a.Left("p1-build-1.1"); err != nil {
		t.Fatal(err)
	}
	at := func(tokens int64, dollars float64) gateway.Sum {
		u := usage.Dollars(dollars)
		return gateway.Sum{Spent: tokens, SpentUSD: &u}
	}
	for _, sum := range []gateway.Sum{{}, at(20, 5), at(31, 7), at(40, 8), at(55, 9)} {
		a.Spent(sum)
	}
	want := "81 % of the budget of this phase is spent: 81 of 100 tokens\n80 % of the budget of this phase is spent: 8.00 of 10 USD\n" +
		"the budget of this phase is used up: 105 of 100 tokens\nthe budget of this phase is used up: 10.00 of 10 USD"
	if got := strings.Join(said, "\n"); got != want {
		t.Errorf("told\n%s\nwant\n%s", got, want)
	}
}
