package money

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"abl/internal/ledger"
	"abl/internal/outcome"
	"abl/internal/pricelist"
	"abl/internal/prices"
	"abl/internal/state"
	"abl/internal/tokens"
	"abl/roles"
)

// Spending is what a number of rows come to, as budgets count.
type Spending struct {
	Tokens   int64
	USD      prices.USD
	Unpriced map[string]bool // models whose tokens have no price
	Unknown  int             // calls of which nobody knows what they used
}

// Spendings are what counts towards the caps of one call.
type Spendings struct{ Call, Phase, Project Spending }

// Spent adds up what counts towards the caps of a call of phase n; key may be "".
// It is what the ledger has, and where a provider did not tell, what the gateway
// charged. An attempt at the same call that came to no proper end counts towards
// the call's own cap: to make it anew is no new call.
func Spent(p state.Project, list pricelist.List, n int, key string) (all Spendings, err error) {
	type ofCall struct{ id, phase, outcome string }
	calls := map[ofCall]*call{}
	err = ledger.Open(p.Ledger()).Scan(func(r ledger.Row) {
		of := ofCall{r.CallID, r.Phase, r.Outcome}
		if calls[of] == nil {
			calls[of] = &call{counts: all.counting(r, fmt.Sprint(n), key)}
		}
		calls[of].add(list, r)
	}, func(int, string) {})
	for of, c := range calls {
		if c.vague {
			c.settle(charged(p, of.id))
		}
		for _, s := range c.counts {
			s.plus(c.known)
		}
	}
	return all, err
}

// counting are the sums that a row counts in.
func (all *Spendings) counting(r ledger.Row, phase, key string) []*Spending {
	sums := []*Spending{&all.Project}
	if r.Phase == phase {
		sums = append(sums, &all.Phase)
	}
	if same, _, _ := strings.Cut(key, "."); same != "" && r.CallID != key && strings.HasPrefix(r.CallID, same+".") && r.Outcome != string(outcome.Done) {
		sums = append(sums, &all.Call)
	}
	return sums
}

// charged is what the gateway of an ended call charged, nil where nobody knows.
func charged(p state.Project, call string) *roles.Charged {
	if filepath.Base(call) != call || strings.HasPrefix(call, ".") { // what stands in a file is no path
		return nil
	}
	o, _, err := roles.Record{Dir: p.Call(call)}.Outcome()
	if err != nil {
		return nil
	}
	return o.Charged
}

// call adds up the rows of one.
type call struct {
	known  Spending
	vague  bool // some row tells only a part
	counts []*Spending
}

func (c *call) add(list pricelist.List, r ledger.Row) {
	used, told := r.All()
	if !told || r.Source == ledger.Nobody {
		c.vague = true
		return
	}
	one := Spending{Tokens: used}
	usd, priced := CostOf(list, r)
	if one.USD = usd; !priced {
		one.Unpriced = map[string]bool{r.Model: true}
	}
	c.known.plus(one)
}

// settle adds what was charged beyond what is known.
func (c *call) settle(charged *roles.Charged) {
	rest := Spending{Unknown: 1}
	if charged != nil {
		rest = Spending{Tokens: max(charged.Tokens-c.known.Tokens, 0)}
		if charged.USD == nil && len(c.known.Unpriced) == 0 {
			rest.Unknown = 1
		} else if charged.USD != nil {
			rest.USD = max(*charged.USD-c.known.USD, 0)
		}
	}
	c.known.plus(rest)
}

func (s *Spending) plus(t Spending) {
	s.Tokens, s.USD, s.Unknown = tokens.Plus(s.Tokens, t.Tokens), s.USD.Plus(t.USD), s.Unknown+t.Unknown
	if s.Unpriced == nil {
		s.Unpriced = map[string]bool{}
	}
	maps.Copy(s.Unpriced, t.Unpriced)
}

// Models are those without a price, sorted.
func (s Spending) Models() []string { return slices.Sorted(maps.Keys(s.Unpriced)) }
