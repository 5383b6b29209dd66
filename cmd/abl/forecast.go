package main

import (
	"fmt"
	"strings"

	"abl/orchestrator/ledger"
	"abl/orchestrator/prices"
	"abl/orchestrator/spec"
	"abl/orchestrator/state"
	"abl/roles"
)

// amount is a number of tokens and what they cost.
type amount struct {
	Tokens  int64      `json:"tokens"`
	USD     prices.USD `json:"usd"`
	AtLeast bool       `json:"at_least"` // a part of it is not known
}

func amountOf(s ledger.Sum) amount {
	return amount{s.Total.Known, s.Cost.Known, s.Total.Missing+s.Cost.Missing > 0}
}

func (m amount) plus(o amount) amount {
	return amount{m.Tokens + o.Tokens, m.USD.Plus(o.USD), m.AtLeast || o.AtLeast}
}

func (m amount) times(n int) amount {
	return amount{m.Tokens * int64(n), m.USD * prices.USD(n), m.AtLeast}
}

// text is the dollars, or where nothing has a price, the tokens.
func (m amount) text() string {
	text := m.USD.Short() + " USD"
	if m.USD == 0 {
		text = fmt.Sprintf("%d tokens", m.Tokens)
	}
	if m.AtLeast {
		text = "at least " + text
	}
	return text
}

// perContract is what the contracts of the passed phases cost each.
type perContract struct {
	Phases    []int  `json:"phases"`
	Contracts int    `json:"contracts"`
	Each      amount `json:"each"`
}

func (s *session) perContract(f *state.File, phases []ledger.Group) *perContract {
	specs, _ := spec.LoadDir(s.project.Specs())
	var c perContract
	var sum amount
	for _, n := range specs.Numbers() {
		p, this := f.Phases[fmt.Sprint(n)], mustSpec(specs, n)
		if p == nil || p.Status != state.Passed {
			continue
		}
		c.Phases, c.Contracts = append(c.Phases, n), c.Contracts+len(this.Contracts)
		sum = sum.plus(amountOf(group(phases, fmt.Sprint(n))))
	}
	if c.Contracts == 0 || sum.Tokens == 0 && sum.USD == 0 {
		return nil
	}
	c.Each = amount{sum.Tokens / int64(c.Contracts), sum.USD / prices.USD(c.Contracts), sum.AtLeast}
	return &c
}

func mustSpec(specs spec.Set, n int) spec.Spec {
	this, _ := specs.Phase(n)
	return this
}

func group(groups []ledger.Group, key string) ledger.Sum {
	for _, g := range groups {
		if g.Key == key {
			return g.Sum
		}
	}
	return ledger.Sum{}
}

func (c perContract) text() string {
	return fmt.Sprintf("a passed contract cost %s (%s of %s)", c.Each.text(), contracts(c.Contracts), phasesText(c.Phases))
}

func contracts(n int) string {
	if n == 1 {
		return "1 contract"
	}
	return fmt.Sprintf("%d contracts", n)
}

func phasesText(all []int) string {
	word := "phase "
	if len(all) > 1 {
		word = "phases "
	}
	return word + strings.Trim(strings.ReplaceAll(fmt.Sprint(all), " ", ", "), "[]")
}

// forecast is what the phase that is under way may come to.
type forecast struct {
	Phase     int    `json:"phase"`
	Iteration int    `json:"iteration"` // of the round
	Of        int    `json:"of"`
	Spent     amount `json:"spent"`
	InCall    amount `json:"in_call"` // of it, what the call that is on has used and the ledger has not
	Each      amount `json:"an_iteration"`
	From      int    `json:"from"` // how many iterations that is the mean of
	Own       bool   `json:"own"`  // they are this phase's, else those of all phases
	Passes    amount `json:"if_it_passes"`
	All       amount `json:"if_all_are_needed"`
}

// forecast is nil when no phase is under way, or nothing is known to go by.
func (s *session) forecast(f *state.File, by map[ledger.By][]ledger.Group) *forecast {
	n, p := underWay(f)
	if p == nil {
		return nil
	}
	at, step := p.Iteration, p.Step
	if p.Status == state.Refuted { // the next one begins
		at, step = at+1, step+1
	}
	most := max(s.conf.Loop.MaxVerifierIterations, at)
	c := forecast{Phase: n, Iteration: at, Of: most, Spent: amountOf(group(by[ledger.ByPhase], fmt.Sprint(n))), Own: true}
	if used := s.inCall(p); used != nil {
		c.InCall = *used
	}
	c.Spent = c.Spent.plus(c.InCall)
	current := fmt.Sprintf("%d/%d", n, step)
	if c.Each, c.From = mean(by[ledger.ByIter], fmt.Sprintf("%d/", n), current); c.From == 0 {
		c.Own = false
		c.Each, c.From = mean(by[ledger.ByIter], "", current)
	}
	if c.From == 0 {
		return nil
	}
	begun := amountOf(group(by[ledger.ByIter], current)).plus(c.InCall)
	rest := amount{max(c.Each.Tokens-begun.Tokens, 0), max(c.Each.USD-begun.USD, 0), c.Each.AtLeast}
	c.Passes = c.Spent.plus(rest)
	c.All = c.Passes.plus(c.Each.times(most - at))
	return &c
}

// inCall is what the call that is on has used by its gateway's count, estimates for
// what is under way left out; nil where there is none, or nothing used. The ledger has it
// once the call has ended.
func (s *session) inCall(p *state.Phase) *amount {
	if p.Call == "" {
		return nil
	}
	used, runs := roles.Record{Dir: s.project.Call(p.Call)}.Spent()
	if !runs || used.Tokens == 0 && (used.USD == nil || *used.USD == 0) {
		return nil
	}
	a := &amount{Tokens: used.Tokens, AtLeast: used.USD == nil}
	if used.USD != nil {
		a.USD = *used.USD
	}
	return a
}

// underWay is the phase that has begun and does not rest.
func underWay(f *state.File) (n int, p *state.Phase) {
	for key, one := range f.Phases {
		var k int
		if _, err := fmt.Sscan(key, &k); err != nil || one == nil || k < n {
			continue
		}
		switch one.Status {
		case state.Building, state.Built, state.Verifying, state.Verified, state.Refuted:
			n, p = k, one
		}
	}
	return n, p
}

// mean is that of the iterations whose key begins in this way, but for one.
func mean(groups []ledger.Group, begin, but string) (each amount, n int) {
	var sum amount
	for _, g := range groups {
		if strings.HasPrefix(g.Key, begin) && g.Key != but {
			sum, n = sum.plus(amountOf(g.Sum)), n+1
		}
	}
	if n == 0 {
		return each, 0
	}
	return amount{sum.Tokens / int64(n), sum.USD / prices.USD(n), sum.AtLeast}, n
}

func (c forecast) text() string {
	from := fmt.Sprintf("the mean of %d before", c.From)
	if !c.Own {
		from = fmt.Sprintf("the mean of %d of other phases", c.From)
	}
	so := "so far"
	if c.InCall.Tokens > 0 || c.InCall.USD > 0 {
		so += fmt.Sprintf(", %s of it in the call that is on", c.InCall.text())
	}
	text := fmt.Sprintf("phase %d is in iteration %d of %d: %s %s; about %s", c.Phase, c.Iteration, c.Of, c.Spent.text(), so, c.Passes.text())
	if c.Iteration < c.Of {
		text += fmt.Sprintf(" if it passes now, %s if all %d are needed", c.All.text(), c.Of)
	} else {
		text += " when it is over"
	}
	return text + fmt.Sprintf(" (%s an iteration, %s)", c.Each.text(), from)
}
