package gateway

import (
	"fmt"
	"math"
	"sync"

	"abl/internal/prices"
)

// budget keeps a call below its bounds: no request begins once what was spent and
// what is under way have reached one.
type budget struct {
	mu       sync.Mutex
	caps     Budget
	spent    amount
	underWay amount // by estimate
	requests int64
	warned   map[string]bool
}

// admit reserves an estimate for a request, or says why the request may not begin.
func (b *budget) admit(estimate amount) (why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if most := b.caps.Requests; most != nil && b.requests >= *most {
		return fmt.Sprintf("the budget of this call is reached: %d of %d requests", b.requests, *most)
	}
	for _, c := range b.caps.all() {
		if why := c.reached(b.spent, b.underWay); why != "" {
			return why
		}
	}
	b.requests++
	b.underWay = b.underWay.plus(estimate)
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

// nearly names the bounds of which a person should know by now, each once.
func (b *budget) nearly() (all []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.caps.all() {
		if text := c.nearly(b.spent); text != "" && !b.warned[c.key()] {
			if b.warned == nil {
				b.warned = map[string]bool{}
			}
			b.warned[c.key()] = true
			all = append(all, text)
		}
	}
	return all
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
	sum := amount{math.MaxInt64, a.usd.Plus(b.usd)}
	if a.tokens <= math.MaxInt64-b.tokens {
		sum.tokens = a.tokens + b.tokens
	}
	return sum
}
