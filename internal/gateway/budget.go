package gateway

import (
	"cmp"
	"fmt"
	"sync"

	"abl/internal/prices"
	"abl/internal/tokens"
)

// What a request is thought to cost before its provider has told: a token has
// about four bytes, and an answer some length.
const (
	bytesPerToken = 4
	answerTokens  = 1000
)

// budget keeps a call below its bounds: no request begins once what was spent and
// what is under way have reached one.
type budget struct {
	mu       sync.Mutex
	caps     Budget
	spent    amount
	underWay amount // by estimate
	requests int64
}

// admit reserves an estimate for a request, or says why the request may not begin. A bound in
// money admits none whose model has no price: it would be no bound.
func (b *budget) admit(estimate amount, priced bool) (why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if most := b.caps.Requests; most != nil && b.requests >= *most {
		return fmt.Sprintf("the budget of this call is reached: %d of %d requests", b.requests, *most)
	}
	for _, bound := range b.caps.Bounds {
		if bound.USD != nil && !priced {
			return fmt.Sprintf("the budget of this %s is in US dollars, and the model has no price", bound.Of)
		}
		if why := bound.reached(b.spent, b.underWay); why != "" {
			return why
		}
	}
	b.requests++
	b.underWay = b.underWay.plus(estimate)
	return ""
}

// reached says why nothing more may begin, "" while it may.
func (b Bound) reached(spent, underWay amount) string {
	spent = amount{b.UsedTokens, b.UsedUSD}.plus(spent)
	full := spent.plus(underWay)
	switch {
	case b.Tokens != nil && full.tokens >= *b.Tokens:
		return fmt.Sprintf("the budget of this %s is reached: %d tokens are spent and about %d under way, of %d", b.Of, spent.tokens, underWay.tokens, *b.Tokens)
	case b.USD != nil && full.usd >= *b.USD:
		return fmt.Sprintf("the budget of this %s is reached: %s USD are spent and about %s under way, of %s", b.Of, spent.usd.Short(), underWay.usd.Short(), *b.USD)
	}
	return ""
}

// settle replaces an estimate by what the request is charged and returns what is
// spent in all.
func (b *budget) settle(estimate, charged amount) amount {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.underWay.tokens -= estimate.tokens
	b.underWay.usd -= estimate.usd
	b.spent = b.spent.plus(charged)
	return b.spent
}

func (b *budget) set(caps Budget) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.caps = caps
}

// amount is the same use of a model in tokens and in money, which is 0 where
// nothing is bounded in money.
type amount struct {
	tokens int64
	usd    prices.USD
}

// plus adds without running over.
func (a amount) plus(b amount) amount {
	return amount{tokens.Plus(a.tokens, b.tokens), a.usd.Plus(b.usd)}
}

// tariff is what a request's model costs; its price is nil where nobody said.
type tariff struct{ *prices.Price }

// estimate is what a request of so many bytes is thought to cost, of whose answer
// so many tokens went by.
func (t tariff) estimate(body int, passed int64) amount {
	input, output := int64(body)/bytesPerToken, max(passed, answerTokens)
	guess := amount{tokens: input + output}
	if usd := t.cost(tokens.Count{Input: &input, Candidates: &output}); usd != nil {
		guess.usd = *usd
	}
	return guess
}

// charge is what an answer costs: as told, and where that is not the whole, the
// estimate if it is more. So nobody gets tokens for nothing by leaving early.
func (t tariff) charge(u tokens.Count, part bool, guess amount) amount {
	all, told := u.All()
	if !told || part {
		all = max(all, guess.tokens)
	}
	usd := t.cost(u)
	if usd != nil && !part {
		return amount{all, *usd}
	}
	u.Input, u.Candidates = cmp.Or(u.Input, new(int64)), cmp.Or(u.Candidates, new(int64))
	if least := t.cost(u); least != nil {
		guess.usd = max(guess.usd, *least)
	}
	return amount{all, guess.usd}
}

// cost is the price of a usage that was told whole, nil where it is unknown.
func (t tariff) cost(u tokens.Count) *prices.USD {
	if t.Price == nil {
		return nil
	}
	if usd, told := t.OfRequest(u); told {
		return &usd
	}
	return nil
}
