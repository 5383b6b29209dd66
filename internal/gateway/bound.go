package gateway

import (
	"fmt"

	"abl/internal/prices"
)

// warnAt is the part of a bound at which a person is told, in percent.
const warnAt = 80

// limit is one number that must not be reached.
type limit struct {
	of    string
	used  amount // before this call
	most  amount // of which one counts
	money bool
}

// all are the numbers that hold, the call's own first.
func (b Budget) all() (all []limit) {
	if b.Tokens != nil {
		all = append(all, limit{of: "call", most: amount{tokens: *b.Tokens}})
	}
	for _, c := range b.Bounds {
		used := amount{c.UsedTokens, c.UsedUSD}
		if c.Tokens != nil {
			all = append(all, limit{of: c.Of, used: used, most: amount{tokens: *c.Tokens}})
		}
		if c.USD != nil {
			all = append(all, limit{of: c.Of, used: used, most: amount{usd: *c.USD}, money: true})
		}
	}
	return all
}

// reached says why nothing more may begin, "" while it may.
func (l limit) reached(spent, underWay amount) string {
	spent = l.used.plus(spent)
	full := spent.plus(underWay)
	switch {
	case l.money && full.usd >= l.most.usd:
		return fmt.Sprintf("the budget of this %s is reached: %s USD are spent and about %s under way, of %s", l.of, spent.usd.Short(), underWay.usd.Short(), l.most.usd)
	case !l.money && full.tokens >= l.most.tokens:
		return fmt.Sprintf("the budget of this %s is reached: %d tokens are spent and about %d under way, of %d", l.of, spent.tokens, underWay.tokens, l.most.tokens)
	}
	return ""
}

// nearly is what a person should know of the bound, "" while it is far.
func (l limit) nearly(spent amount) string {
	spent = l.used.plus(spent)
	return Nears(l.of, spent.tokens, l.most.tokens, spent.usd, l.most.usd, l.money)
}

// Nears words that most of a bound is spent, or all of it and by how much, in tokens
// or in money; "" while it is not.
func Nears(of string, tokens, mostTokens int64, usd, mostUSD prices.USD, money bool) string {
	part, most := float64(tokens), float64(mostTokens)
	text := fmt.Sprintf("%d of %d tokens", tokens, mostTokens)
	if money {
		part, most = float64(usd), float64(mostUSD)
		text = fmt.Sprintf("%s of %s USD", usd.Short(), mostUSD)
	}
	switch {
	case most <= 0 || part*100 < most*warnAt:
		return ""
	case part >= most:
		return fmt.Sprintf("the budget of this %s is used up: %s", of, text)
	}
	return fmt.Sprintf("%d %% of the budget of this %s are spent: %s", int(part*100/most), of, text) // rounded down: all of it is another sentence
}

// key tells the numbers apart, so that each is told of once; a raised one is new.
func (l limit) key() string { return fmt.Sprint(l.of, l.money, l.most) }
