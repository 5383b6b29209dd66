package money

import (
	"fmt"
	"strings"

	"abl/cmd/internal/exit"
	"abl/internal/config"
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
