package money

import (
	"fmt"
	"strings"

	"abl/cmd/internal/exit"
	"abl/internal/config"
	"abl/internal/gateway"
	"abl/internal/prices"
	"abl/roles/retry"
)

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
