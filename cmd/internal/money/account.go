package money

import (
	"fmt"
	"strings"
	"sync"
	"unicode"

	"abl/internal/config"
	"abl/internal/gateway"
	"abl/internal/prices"
)

// Account is what the calls of a phase, or of a session of the learner, may spend.
type Account struct {
	Conf  *config.Loaded
	Used  func(call string) (Spendings, error) // what counts towards a call's caps; "" for none
	Words Words
	Tell  func(string) // hears warnings, each once

	mu   sync.Mutex // a gateway's watch tells of what is spent, too
	told map[string]bool
	held []Cap // by the gateway of the call that is on
}

// caps are those of a call that are set.
func (a *Account) caps(call string) (set []Cap, err error) {
	used, err := a.Used(call)
	b := a.Conf.Budget
	for _, c := range []Cap{{"call", b.Call, used.Call}, {"phase", b.Phase, used.Phase}, {"project", b.Project, used.Project}} {
		if c.Cap.Tokens > 0 || c.Cap.USD > 0 {
			set = append(set, c)
		}
	}
	return set, err
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

// Spent warns of the caps that a call's requests, as its gateway logs them, nearly spend.
func (a *Account) Spent(log []gateway.Entry) {
	a.mu.Lock()
	caps := a.held
	a.mu.Unlock()
	for _, e := range log {
		for _, c := range caps {
			if e.Req == nil {
				continue
			}
			c.Used.Tokens += e.Req.Spent
			if e.Req.SpentUSD != nil {
				c.Used.USD = c.Used.USD.Plus(*e.Req.SpentUSD)
			}
			a.Warn(c.Nearly()...)
		}
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
		about := strings.Map(func(c rune) rune {
			if unicode.IsDigit(c) || c == '.' {
				return -1
			}
			return c
		}, text)
		if a.told[about] {
			continue
		}
		if a.told == nil {
			a.told = map[string]bool{}
		}
		a.told[about] = true
		a.Tell(text)
	}
}
