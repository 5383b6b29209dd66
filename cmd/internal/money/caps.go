package money

import (
	"fmt"
	"strings"
	"sync"
	"unicode"

	"abl/cmd/internal/exit"
	"abl/internal/config"
	"abl/orchestrator/gateway"
	"abl/orchestrator/prices"
	"abl/roles/retry"
)

// Cap is one that is set, and what counts towards it.
type Cap struct {
	Of   string // call, phase or project
	Cap  config.Cap
	Used Spending
}

// Caps are those of a call, with what is used of them.
func Caps(b config.Budget, used Spendings) (set []Cap) {
	for _, c := range []Cap{{"call", b.Call, used.Call}, {"phase", b.Phase, used.Phase}, {"project", b.Project, used.Project}} {
		if c.Cap.Tokens > 0 || c.Cap.USD > 0 {
			set = append(set, c)
		}
	}
	return set
}

// Words are those of a command for a cap that is reached: what goes on when it is
// given again with a higher budget, and what is safe meanwhile.
type Words struct{ Again, Safe string }

// Admit is nil while every cap leaves something.
func Admit(caps []Cap, w Words, tell func(...string)) error {
	for _, c := range caps {
		if err := c.Admits(w); err != nil {
			return err
		}
		tell(c.Nearly()...)
		if c.Used.Unknown > 0 {
			tell(fmt.Sprintf("nobody knows what %d calls of this %s used: its budget sees the rest", c.Used.Unknown, c.Of))
		}
	}
	return nil
}

// Admits is nil while the cap leaves something.
func (c Cap) Admits(w Words) error {
	usd := prices.Dollars(c.Cap.USD)
	switch {
	case usd > 0 && len(c.Used.Unpriced) > 0:
		models := c.Used.Models()
		return Unpriced(fmt.Sprintf("tokens of %s are spent, which has no price", strings.Join(models, ", ")), models[0])
	case usd > 0 && c.Used.USD >= usd:
		return w.spentOut(fmt.Sprintf("%s of %s USD of the %s are spent", c.Used.USD.Short(), usd, c.Of),
			fmt.Sprintf("raise budget.%s.usd in .abl/config.yaml and run the same command again, or go on with %s --budget-usd +5", c.Of, w.Again))
	case c.Cap.Tokens > 0 && c.Used.Tokens >= c.Cap.Tokens:
		return w.spentOut(fmt.Sprintf("%d of %d tokens of the %s are used", c.Used.Tokens, c.Cap.Tokens, c.Of),
			fmt.Sprintf("raise budget.%s.tokens in .abl/config.yaml and run the same command again, or go on with %s --budget-tokens +%d", c.Of, w.Again, c.Cap.Tokens))
	}
	return nil
}

func (w Words) spentOut(what, do string) error {
	return &exit.Error{Code: exit.Budget, Err: retry.ErrBudget, Safe: w.Safe, What: fmt.Sprintf("%v: %s", retry.ErrBudget, what), Do: do}
}

// Nearly is what a person should know of a cap by now.
func (c Cap) Nearly() (all []string) {
	usd := prices.Dollars(c.Cap.USD)
	for _, text := range []string{
		gateway.Nears(c.Of, c.Used.Tokens, c.Cap.Tokens, 0, 0, false),
		gateway.Nears(c.Of, 0, 0, c.Used.USD, usd, true),
	} {
		if text != "" {
			all = append(all, text)
		}
	}
	return all
}

// Left is what a call may spend, as its gateway is told.
func Left(requests int64, caps []Cap) gateway.Budget {
	b := gateway.Budget{Requests: &requests}
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
	return b
}

// Warner passes on warnings of budgets, each once: one that differs from another
// by its figures alone is the same. A gateway's watch calls it too.
type Warner struct {
	mu   sync.Mutex
	told map[string]bool
	Tell func(string)
}

// Warn passes them on.
func (w *Warner) Warn(texts ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, text := range texts {
		about := strings.Map(func(c rune) rune {
			if unicode.IsDigit(c) || c == '.' {
				return -1
			}
			return c
		}, text)
		if w.told[about] {
			continue
		}
		if w.told == nil {
			w.told = map[string]bool{}
		}
		w.told[about] = true
		w.Tell(text)
	}
}
