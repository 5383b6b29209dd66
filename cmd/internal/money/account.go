package money

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"abl/cmd/internal/exit"
	"abl/internal/config"
	"abl/internal/gateway"
	"abl/internal/ledger"
	"abl/internal/outcome"
	"abl/internal/state"
	"abl/internal/usage"
	"abl/internal/wording"
	"abl/roles"
	"abl/roles/call"
)

// Account enforces the caps on the calls of a phase, or of a session of the learner.
type Account struct {
	Conf  *config.Loaded
	Used  func(call string) (Spendings, error) // the spending that counts towards a call's caps; call may be ""
	Words Words
	Note  func(string) // is called for each warning, once

	mu     sync.Mutex // Spent is called while a call runs
	warned []string   // the warnings without figures
	caps   []Cap      // of the running call
}

// Caps returns the caps of a budget that are set, with the spending that counts towards each.
func Caps(b config.Budget, used Spendings) []Cap {
	all := []Cap{{"call", b.Call, used.Call}, {"phase", b.Phase, used.Phase}, {"project", b.Project, used.Project}}
	return slices.DeleteFunc(all, func(c Cap) bool { return c.Cap.Tokens <= 0 && c.Cap.USD <= 0 })
}

// CapsText returns the caps of a budget in words.
func CapsText(b config.Budget) string {
	var caps []string
	for _, c := range Caps(b, Spendings{}) {
		if c.Cap.Tokens > 0 {
			caps = append(caps, fmt.Sprintf("at most %d tokens per %s", c.Cap.Tokens, c.Of))
		}
		if usd := usage.Dollars(c.Cap.USD); usd > 0 {
			caps = append(caps, fmt.Sprintf("at most %s USD per %s", usd, c.Of))
		}
	}
	if len(caps) == 0 {
		return "no limit"
	}
	return strings.Join(caps, ", ")
}

// capsOf returns the caps of a call.
func (a *Account) capsOf(call string) ([]Cap, error) {
	used, err := a.Used(call)
	return Caps(a.Conf.Budget, used), err
}

// Admit returns an error if a cap leaves nothing for a call, and warns of caps that are nearly spent.
func (a *Account) Admit(call string) error {
	caps, err := a.capsOf(call)
	if err != nil {
		return err
	}
	for _, c := range caps {
		if err := c.Check(a.Words); err != nil {
			return err
		}
		a.Warn(c.Warnings()...)
		if c.Used.Unknown > 0 {
			a.Warn(fmt.Sprintf("the usage of %s of this %s is unknown: its budget counts only the others",
				wording.Count(c.Used.Unknown, "call"), c.Of))
		}
	}
	return nil
}

// Left returns the budget of a call for its gateway.
func (a *Account) Left(call string) (gateway.Budget, error) {
	caps, err := a.capsOf(call)
	b := gateway.Budget{Requests: &a.Conf.Limits.Requests}
	for _, c := range caps {
		bound := gateway.Bound{Of: c.Of, UsedTokens: c.Used.Tokens, UsedUSD: c.Used.USD}
		if n := c.Cap.Tokens; n > 0 {
			bound.Tokens = &n
		}
		if usd := usage.Dollars(c.Cap.USD); usd > 0 {
			bound.USD = &usd
		}
		b.Bounds = append(b.Bounds, bound)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.caps = caps
	return b, err
}

// Spent warns of the caps that a running call has nearly spent.
func (a *Account) Spent(by gateway.Sum) {
	a.mu.Lock()
	caps := a.caps
	a.mu.Unlock()
	for _, c := range caps {
		c.Used.Tokens += by.Spent
		if by.SpentUSD != nil {
			c.Used.USD = c.Used.USD.Plus(*by.SpentUSD)
		}
		a.Warn(c.Warnings()...)
	}
}

// TellSpent warns, at the end of a run, of caps that are nearly spent or exceeded. The last request may
// exceed a cap.
func (a *Account) TellSpent() {
	caps, err := a.capsOf("")
	if err != nil {
		return // Admit returned the error, or the next run does
	}
	for _, c := range caps {
		a.Warn(c.Warnings()...)
	}
}

// Warn passes on each warning once. Warnings that differ only in figures are the same.
func (a *Account) Warn(texts ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, text := range texts {
		about := figures.ReplaceAllString(text, "")
		if !slices.Contains(a.warned, about) {
			a.warned = append(a.warned, about)
			a.Note(text)
		}
	}
}

var figures = regexp.MustCompile(`[0-9.]+`)

// Cap is a cap that is set, with the spending that counts towards it.
type Cap struct {
	Of   string // call, phase or project
	Cap  config.Cap
	Used Spending
}

// Words are the words of a command for a reached cap: the command to run again with a higher budget, and
// what abl has saved.
type Words struct{ Again, Safe string }

// Check returns an error if nothing is left of the cap.
func (c Cap) Check(w Words) error {
	usd := usage.Dollars(c.Cap.USD)
	switch {
	case usd > 0 && len(c.Used.Unpriced) > 0:
		models := c.Used.Models()
		return Unpriced(fmt.Sprintf("models without a price were used: %s", strings.Join(models, ", ")), models[0])
	case usd > 0 && c.Used.USD >= usd:
		return w.spentOut(c.Of, "usd", "5", fmt.Sprintf("%s of %s USD of the %s are spent", c.Used.USD.Short(), usd, c.Of))
	case c.Cap.Tokens > 0 && c.Used.Tokens >= c.Cap.Tokens:
		what := fmt.Sprintf("%d of %d tokens of the %s are used", c.Used.Tokens, c.Cap.Tokens, c.Of)
		return w.spentOut(c.Of, "tokens", fmt.Sprint(c.Cap.Tokens), what)
	}
	return nil
}

// spentOut returns the error of a reached limit: of and unit name the setting, more is the proposed
// increase.
func (w Words) spentOut(of, unit, more, what string) error {
	return &exit.Error{
		Code: exit.Budget,
		Err:  call.ErrBudget,
		What: fmt.Sprintf("%v: %s", call.ErrBudget, what),
		Safe: w.Safe,
		Do: fmt.Sprintf("raise budget.%s.%s in .abl/config.yaml and run the same command again, "+
			"or continue with %s --budget-%s +%s",
			of, unit, w.Again, unit, more),
	}
}

// warnAt is the part of a cap from which on abl warns, in percent.
const warnAt = 80

// Warnings returns a warning for each limit of the cap of which warnAt percent are used.
func (c Cap) Warnings() (all []string) {
	most := usage.Dollars(c.Cap.USD)
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
		default: // rounded down: 100 % is the other warning
			all = append(all, fmt.Sprintf("%d %% of the budget of this %s is spent: %s", int(one.part*100/one.most), c.Of,
				one.text))
		}
	}
	return all
}

// Spending sums up rows, as budgets count them.
type Spending struct {
	Tokens   int64
	USD      usage.USD
	Unpriced map[string]bool // models whose tokens have no price
	Unknown  int             // calls with unknown usage
}

// Spendings is the spending that counts towards the caps of one call.
type Spendings struct{ Call, Phase, Project Spending }

// Spent adds up the spending that counts towards the caps of a call of phase n; key may be "". It uses the
// ledger, and the amount that the gateway charged if the provider did not report the usage. Failed attempts
// of the same call count towards the call's cap.
func Spent(p state.Project, list ledger.Prices, n int, key string) (all Spendings, err error) {
	type ofCall struct{ id, phase, outcome string }
	calls := map[ofCall]*callSum{}
	err = ledger.Open(p.Ledger()).Scan(func(r ledger.Row) {
		of := ofCall{r.CallID, r.Phase, r.Outcome}
		if calls[of] == nil {
			calls[of] = &callSum{counts: all.counting(r, fmt.Sprint(n), key)}
		}
		calls[of].add(list, r)
	}, func(int, string) {})
	for of, c := range calls {
		if c.incomplete {
			c.addCharged(charged(p, of.id))
		}
		for _, s := range c.counts {
			s.plus(c.known)
		}
	}
	return all, err
}

// counting returns the sums that a row counts towards.
func (all *Spendings) counting(r ledger.Row, phase, key string) []*Spending {
	sums := []*Spending{&all.Project}
	if r.Phase == phase {
		sums = append(sums, &all.Phase)
	}
	if same, _, _ := strings.Cut(key, "."); same != "" && r.CallID != key &&
		strings.HasPrefix(r.CallID, same+".") && r.Outcome != string(outcome.Done) {
		sums = append(sums, &all.Call)
	}
	return sums
}

// charged returns what the gateway charged for an ended call, nil if that is unknown.
func charged(p state.Project, call string) *roles.Charged {
	if filepath.Base(call) != call || strings.HasPrefix(call, ".") { // an id in the file may not be a path
		return nil
	}
	o, _, err := roles.Record{Dir: p.Call(call)}.Outcome()
	if err != nil {
		return nil
	}
	return o.Charged
}

// callSum sums up the rows of a call.
type callSum struct {
	known      Spending
	incomplete bool // the usage of some row is unknown in part
	counts     []*Spending
}

// add adds the tokens and the cost of a row of the ledger.
func (c *callSum) add(list ledger.Prices, r ledger.Row) {
	used, complete := r.All()
	if !complete || r.Source == ledger.Nobody {
		c.incomplete = true
		return
	}
	one := Spending{Tokens: used}
	usd, priced := list.CostOf(r)
	one.USD = usd
	if !priced {
		one.Unpriced = map[string]bool{r.Model: true}
	}
	c.known.plus(one)
}

// addCharged adds the difference between the charged and the known usage.
func (c *callSum) addCharged(charged *roles.Charged) {
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
	s.Tokens, s.USD, s.Unknown = usage.Plus(s.Tokens, t.Tokens), s.USD.Plus(t.USD), s.Unknown+t.Unknown
	if s.Unpriced == nil {
		s.Unpriced = map[string]bool{}
	}
	maps.Copy(s.Unpriced, t.Unpriced)
}

// Models returns the models without a price, sorted.
func (s Spending) Models() []string { return slices.Sorted(maps.Keys(s.Unpriced)) }
