package money

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"abl/cmd/internal/exit"
	"abl/internal/config"
	"abl/internal/gateway"
	"abl/internal/lazyregexp"
	"abl/internal/ledger"
	"abl/internal/outcome"
	"abl/internal/pricelist"
	"abl/internal/prices"
	"abl/internal/state"
	"abl/internal/tokens"
	"abl/roles"
	"abl/roles/retry"
)

// Account is what the calls of a phase, or of a session of the learner, may spend.
type Account struct {
	Conf  *config.Loaded
	Used  func(call string) (Spendings, error) // what counts towards a call's caps; "" for none
	Words Words
	Tell  func(string) // hears warnings, each once

	mu   sync.Mutex // a gateway's watch tells of what is spent, too
	told []string
	held []Cap // by the gateway of the call that is on
}

// Caps are those of a budget that are set, with what counts towards each.
func Caps(b config.Budget, used Spendings) []Cap {
	all := []Cap{{"call", b.Call, used.Call}, {"phase", b.Phase, used.Phase}, {"project", b.Project, used.Project}}
	return slices.DeleteFunc(all, func(c Cap) bool { return c.Cap.Tokens <= 0 && c.Cap.USD <= 0 })
}

// caps are those of a call.
func (a *Account) caps(call string) ([]Cap, error) {
	used, err := a.Used(call)
	return Caps(a.Conf.Budget, used), err
}

// Admit is asked before every call: it is nil while every cap leaves something.
func (a *Account) Admit(call string) error {
	caps, err := a.caps(call)
	if err != nil {
		return err
	}
	for _, c := range caps {
		if err := c.Admits(a.Words); err != nil {
			return err
		}
		a.Warn(c.Nearly()...)
		if c.Used.Unknown > 0 {
			a.Warn(fmt.Sprintf("nobody knows what %d calls of this %s used: its budget sees the rest", c.Used.Unknown, c.Of))
		}
	}
	return nil
}

// Left is what a call may spend, as its gateway is told.
func (a *Account) Left(call string) (gateway.Budget, error) {
	caps, err := a.caps(call)
	b := gateway.Budget{Requests: &a.Conf.Limits.Requests}
	for _, c := range caps {
		bound := gateway.Bound{Of: c.Of, UsedTokens: c.Used.Tokens, UsedUSD: c.Used.USD}
		if n := c.Cap.Tokens; n > 0 {
			bound.Tokens = &n
		}
		if usd := prices.Dollars(c.Cap.USD); usd > 0 {
			bound.USD = &usd
		}
		b.Bounds = append(b.Bounds, bound)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held = caps
	return b, err
}

// Spent warns of the caps that a running call nearly spends.
func (a *Account) Spent(by gateway.Sum) {
	a.mu.Lock()
	caps := a.held
	a.mu.Unlock()
	for _, c := range caps {
		c.Used.Tokens += by.Spent
		if by.SpentUSD != nil {
			c.Used.USD = c.Used.USD.Plus(*by.SpentUSD)
		}
		a.Warn(c.Nearly()...)
	}
}

// TellSpent says at the end which caps are nearly spent, or are passed and by how
// much: the last request may go beyond one.
func (a *Account) TellSpent() {
	caps, err := a.caps("")
	if err != nil {
		return // the run has said so, or the next one will
	}
	for _, c := range caps {
		a.Warn(c.Nearly()...)
	}
}

// Warn passes warnings on, each once: one that differs from another by its figures
// alone is the same.
func (a *Account) Warn(texts ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, text := range texts {
		about := figures().ReplaceAllString(text, "")
		if !slices.Contains(a.told, about) {
			a.told = append(a.told, about)
			a.Tell(text)
		}
	}
}

var figures = lazyregexp.New(`[0-9.]+`)

// Cap is one that is set, and what counts towards it.
type Cap struct {
	Of   string // call, phase or project
	Cap  config.Cap
	Used Spending
}

// Words are those of a command for a cap that is reached: what goes on when it is
// given again with a higher budget, and what is safe meanwhile.
type Words struct{ Again, Safe string }

// Admits is nil while the cap leaves something.
func (c Cap) Admits(w Words) error {
	usd := prices.Dollars(c.Cap.USD)
	switch {
	case usd > 0 && len(c.Used.Unpriced) > 0:
		models := c.Used.Models()
		return Unpriced(fmt.Sprintf("tokens of %s are spent, which has no price", strings.Join(models, ", ")), models[0])
	case usd > 0 && c.Used.USD >= usd:
		return w.spentOut(c.Of, "usd", "5", fmt.Sprintf("%s of %s USD of the %s are spent", c.Used.USD.Short(), usd, c.Of))
	case c.Cap.Tokens > 0 && c.Used.Tokens >= c.Cap.Tokens:
		what := fmt.Sprintf("%d of %d tokens of the %s are used", c.Used.Tokens, c.Cap.Tokens, c.Of)
		return w.spentOut(c.Of, "tokens", fmt.Sprint(c.Cap.Tokens), what)
	}
	return nil
}

func (w Words) spentOut(of, unit, more, what string) error {
	return &exit.Error{
		Code: exit.Budget, Err: retry.ErrBudget, What: fmt.Sprintf("%v: %s", retry.ErrBudget, what), Safe: w.Safe,
		Do: fmt.Sprintf("raise budget.%s.%s in .abl/config.yaml and run the same command again, or go on with %s --budget-%s +%s", of, unit, w.Again, unit, more),
	}
}

// warnAt is the part of a cap at which a person is told, in percent.
const warnAt = 80

// Nearly is what a person should know of a cap by now.
func (c Cap) Nearly() (all []string) {
	most := prices.Dollars(c.Cap.USD)
	for _, one := range []struct {
		part, most float64
		text       string
	}{
		{float64(c.Used.Tokens), float64(c.Cap.Tokens), fmt.Sprintf("%d of %d tokens", c.Used.Tokens, c.Cap.Tokens)},
		{float64(c.Used.USD), float64(most), fmt.Sprintf("%s of %s USD", c.Used.USD.Short(), most)},
	} {
		switch {
		case one.most <= 0 || one.part*100 < one.most*warnAt:
		case one.part >= one.most:
			all = append(all, fmt.Sprintf("the budget of this %s is used up: %s", c.Of, one.text))
		default: // rounded down: all of it is another sentence
			all = append(all, fmt.Sprintf("%d %% of the budget of this %s are spent: %s", int(one.part*100/one.most), c.Of, one.text))
		}
	}
	return all
}

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
