package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"abl/orchestrator/ledger"
	"abl/orchestrator/pricelist"
	"abl/orchestrator/prices"
	"abl/roles"
)

// spending is what a number of rows come to, as budgets count.
type spending struct {
	tokens   int64
	usd      prices.USD
	unpriced map[string]bool // models whose tokens have no price
	unknown  int             // calls of which nobody knows what they used
}

// spendings are what counts towards the caps of one call.
type spendings struct{ call, phase, project spending }

// spent adds up what counts towards the caps of a call of phase n; key may be "".
// It is what the ledger has, and where a provider did not tell, what the gateway
// charged. An attempt at the same call that came to no proper end counts towards
// the call's own cap: to make it anew is no new call.
func (s *session) spent(n int, key string) (spendings, error) {
	list, err := s.pricing()
	if err != nil {
		return spendings{}, err
	}
	c := counting{list: list, phase: fmt.Sprint(n), key: key, vague: map[string]*vague{}}
	book := ledger.Open(s.project.Ledger())
	if err := book.Scan(c.add, func(int, string) {}); err != nil || len(c.vague) == 0 {
		return c.spendings, err
	}
	if err := book.Scan(c.know, func(int, string) {}); err != nil {
		return spendings{}, err
	}
	for id, v := range c.vague {
		v.settle(s.charged(id))
	}
	return c.spendings, nil
}

// charged is what the gateway of an ended call charged, nil where nobody knows.
func (s *session) charged(call string) *roles.Charged {
	if _, proper := parseKey(call); !proper { // what stands in a file is no path
		return nil
	}
	o, _, err := roles.Record{Dir: s.project.Call(call)}.Outcome()
	if err != nil {
		return nil
	}
	return o.Charged
}

// counting adds rows up.
type counting struct {
	spendings
	list  pricelist.List
	phase string
	key   string
	vague map[string]*vague
}

// vague is a call that was not told whole: what is known of it, and where it counts.
type vague struct {
	known  spending
	counts []*spending
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
func (c *counting) of(r ledger.Row) (one spending, whole bool) {
	tokens, told := r.Tokens()
	if !told || r.Source == ledger.Nobody {
		return one, false
	}
	one.tokens = tokens
	usd, priced := costOf(c.list, r)
	if one.usd = usd; !priced {
		one.unpriced = map[string]bool{strings.Clone(r.Model): true}
	}
	return one, true
}

// counts are the sums that a row counts in.
func (c *counting) counts(r ledger.Row) []*spending {
	all := []*spending{&c.project}
	if r.Phase == c.phase {
		all = append(all, &c.spendings.phase)
	}
	if same, _, _ := strings.Cut(c.key, "."); same != "" && r.CallID != c.key && strings.HasPrefix(r.CallID, same+".") && r.Outcome != string(roles.Done) {
		all = append(all, &c.call)
	}
	return all
}

// settle adds what was charged beyond what is known.
func (v *vague) settle(charged *roles.Charged) {
	rest := spending{unknown: 1}
	if charged != nil {
		rest = spending{tokens: max(charged.Tokens-v.known.tokens, 0)}
		if charged.USD == nil && len(v.known.unpriced) == 0 {
			rest.unknown = 1
		} else if charged.USD != nil {
			rest.usd = max(*charged.USD-v.known.usd, 0)
		}
	}
	for _, s := range v.counts {
		s.plus(rest)
	}
}

func (s *spending) plus(t spending) {
	if s.tokens > math.MaxInt64-t.tokens {
		s.tokens = math.MaxInt64
	} else {
		s.tokens += t.tokens
	}
	s.usd = s.usd.Plus(t.usd)
	s.unknown += t.unknown
	for model := range t.unpriced {
		if s.unpriced == nil {
			s.unpriced = map[string]bool{}
		}
		s.unpriced[model] = true
	}
}

// models are those without a price, sorted.
func (s spending) models() []string { return slices.Sorted(maps.Keys(s.unpriced)) }
