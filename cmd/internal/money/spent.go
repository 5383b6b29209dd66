package money

import (
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"abl/internal/ledger"
	"abl/internal/outcome"
	"abl/internal/pricelist"
	"abl/internal/prices"
	"abl/internal/state"
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
func Spent(p state.Project, list pricelist.List, n int, key string) (Spendings, error) {
	c := counting{list: list, phase: fmt.Sprint(n), key: key, vague: map[string]*vague{}}
	book := ledger.Open(p.Ledger())
	if err := book.Scan(c.add, func(int, string) {}); err != nil || len(c.vague) == 0 {
		return c.Spendings, err
	}
	if err := book.Scan(c.know, func(int, string) {}); err != nil {
		return Spendings{}, err
	}
	for id, v := range c.vague {
		v.settle(charged(p, id))
	}
	return c.Spendings, nil
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

// counting adds rows up.
type counting struct {
	Spendings
	list  pricelist.List
	phase string
	key   string
	vague map[string]*vague
}

// vague is a call that was not told whole: what is known of it, and where it counts.
type vague struct {
	known  Spending
	counts []*Spending
}

func (c *counting) add(r ledger.Row) {
	one, whole := c.of(r)
	counts := c.counts(r)
	if !whole {
		c.vague[strings.Clone(r.CallID)] = &vague{counts: counts}
		return
	}
	for _, s := range counts {
		s.plus(one)
	}
}

// know adds up what is known of the vague calls.
func (c *counting) know(r ledger.Row) {
	if v := c.vague[r.CallID]; v != nil {
		if one, whole := c.of(r); whole {
			v.known.plus(one)
		}
	}
}

// of is what one row comes to; false where it tells only a part.
func (c *counting) of(r ledger.Row) (one Spending, whole bool) {
	tokens, told := r.All()
	if !told || r.Source == ledger.Nobody {
		return one, false
	}
	one.Tokens = tokens
	usd, priced := CostOf(c.list, r)
	if one.USD = usd; !priced {
		one.Unpriced = map[string]bool{strings.Clone(r.Model): true}
	}
	return one, true
}

// counts are the sums that a row counts in.
func (c *counting) counts(r ledger.Row) []*Spending {
	all := []*Spending{&c.Project}
	if r.Phase == c.phase {
		all = append(all, &c.Phase)
	}
	if same, _, _ := strings.Cut(c.key, "."); same != "" && r.CallID != c.key && strings.HasPrefix(r.CallID, same+".") && r.Outcome != string(outcome.Done) {
		all = append(all, &c.Call)
	}
	return all
}

// settle adds what was charged beyond what is known.
func (v *vague) settle(charged *roles.Charged) {
	rest := Spending{Unknown: 1}
	if charged != nil {
		rest = Spending{Tokens: max(charged.Tokens-v.known.Tokens, 0)}
		if charged.USD == nil && len(v.known.Unpriced) == 0 {
			rest.Unknown = 1
		} else if charged.USD != nil {
			rest.USD = max(*charged.USD-v.known.USD, 0)
		}
	}
	for _, s := range v.counts {
		s.plus(rest)
	}
}

func (s *Spending) plus(t Spending) {
	if s.Tokens > math.MaxInt64-t.Tokens {
		s.Tokens = math.MaxInt64
	} else {
		s.Tokens += t.Tokens
	}
	s.USD = s.USD.Plus(t.USD)
	s.Unknown += t.Unknown
	for model := range t.Unpriced {
		if s.Unpriced == nil {
			s.Unpriced = map[string]bool{}
		}
		s.Unpriced[model] = true
	}
}

// Models are those without a price, sorted.
func (s Spending) Models() []string { return slices.Sorted(maps.Keys(s.Unpriced)) }
