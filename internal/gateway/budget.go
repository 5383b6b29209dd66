package gateway

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"sync"

	"abl/internal/prices"
	"abl/internal/tokens"
)

// Sum is what a call has used so far. Every line of the log holds it, so that the newest
// line is enough, however many before it are lost.
type Sum struct {
	Model    string `json:"model,omitempty"` // that was asked last
	Requests int64  `json:"requests"`        // that the provider may charge for
	Unknown  int64  `json:"unknown"`         // of these, requests whose usage was not reported, or not all of it

	Usage tokens.Count `json:"usage,omitzero"`     // reported for the other requests
	Cost  *prices.USD  `json:"cost_usd,omitempty"` // of that usage; nil if the model has no price
	Part  tokens.Count `json:"part,omitzero"`      // reported for the unknown ones

	// What the budgets count: the reported usage, and the reservation of an unknown request.
	// The dollars are nil if a model without a price was asked.
	Spent    int64       `json:"spent"`
	SpentUSD *prices.USD `json:"spent_usd,omitempty"`

	UnderWay    int64      `json:"under_way,omitempty"` // requests that have not ended
	Reserved    int64      `json:"reserved,omitempty"`  // for them, in tokens and dollars
	ReservedUSD prices.USD `json:"reserved_usd,omitempty"`

	Over string `json:"over,omitempty"` // why a request was refused, if a bound was reached
}

// Most returns what the call has used at most: what is spent, and what is reserved.
func (s Sum) Most() (all int64, usd *prices.USD) {
	if s.SpentUSD != nil {
		usd = new(s.SpentUSD.Plus(s.ReservedUSD))
	}
	return tokens.Plus(s.Spent, s.Reserved), usd
}

// budget keeps a call below its bounds. Each request reserves its own maximum before it
// begins, so that a bound is passed by one answer at most.
type budget struct {
	turn chan struct{} // held by the first of those that wait

	mu       sync.Mutex
	caps     Budget
	changed  chan struct{} // closed when a request ends, or the bounds change
	sum      Sum
	spent    amount
	reserved amount
	requests int64 // that were admitted, free ones among them
}

func newBudget(caps Budget) *budget {
	return &budget{
		turn:    make(chan struct{}, 1),
		caps:    caps,
		changed: make(chan struct{}),
		sum:     Sum{SpentUSD: new(prices.USD)},
	}
}

// admit reserves the maximum of a request, or says why the request may not begin. While
// others are under way and leave no room for it, it waits; if none is, it begins as soon as
// the bounds leave anything. A free request has no maximum and never waits.
func (b *budget) admit(ctx context.Context, most amount, priced bool) (why string, err error) {
	if most != (amount{}) { // in the order in which they came
		select {
		case b.turn <- struct{}{}:
			defer func() { <-b.turn }()
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
	for {
		why, wait := b.try(most, priced)
		if wait == nil {
			return why, nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// try admits a request, says why it may not begin, or returns what to wait for.
func (b *budget) try(most amount, priced bool) (why string, wait <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if why = b.reached(priced); why != "" {
		b.sum.Over = why
		return why, nil
	}
	free := most == amount{}
	if !free && b.sum.UnderWay > 0 && !b.fits(most) {
		return "", b.changed
	}
	b.requests++
	if !free {
		b.sum.UnderWay++
		b.reserved = b.reserved.plus(most)
		if !priced {
			b.sum.SpentUSD = nil
		}
	}
	return "", nil
}

// reached says why no request may begin. A bound in dollars admits no model without a price:
// it would not bound anything.
func (b *budget) reached(priced bool) string {
	if most := b.caps.Requests; most != nil && b.requests >= *most {
		return fmt.Sprintf("the budget of this call is reached: %d of %d requests", b.requests, *most)
	}
	for _, bound := range b.caps.Bounds {
		name, used := "the budget of this "+bound.Of, amount{bound.UsedTokens, bound.UsedUSD}.plus(b.spent)
		switch {
		case bound.USD != nil && !priced:
			return name + " is in US dollars, and the model has no price"
		case bound.Tokens != nil && used.tokens >= *bound.Tokens:
			return fmt.Sprintf("%s is reached: %d of %d tokens are spent", name, used.tokens, *bound.Tokens)
		case bound.USD != nil && used.usd >= *bound.USD:
			return fmt.Sprintf("%s is reached: %s of %s USD are spent", name, used.usd.Short(), *bound.USD)
		}
	}
	return ""
}

// fits reports whether the bounds hold even if everything under way and this request cost
// their maximum.
func (b *budget) fits(most amount) bool {
	for _, bound := range b.caps.Bounds {
		full := amount{bound.UsedTokens, bound.UsedUSD}.plus(b.spent).plus(b.reserved).plus(most)
		if bound.Tokens != nil && full.tokens > *bound.Tokens || bound.USD != nil && full.usd > *bound.USD {
			return false
		}
	}
	return true
}

// bill is what one request cost.
type bill struct {
	charged amount // by the budgets
	usage   tokens.Count
	cost    *prices.USD // nil if it is unknown
	whole   bool        // the usage is all of it
}

// settle replaces a reservation by the bill, which is nil if the provider charges nothing.
func (b *budget) settle(most amount, model string, paid *bill) Sum {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &b.sum
	s.UnderWay--
	b.reserved.tokens -= most.tokens
	b.reserved.usd -= most.usd
	if paid != nil {
		s.Model = model
		s.Requests++
		b.spent = b.spent.plus(paid.charged)
		if paid.whole {
			s.Usage = s.Usage.Add(paid.usage)
		} else {
			s.Unknown++
			s.Part = s.Part.Add(paid.usage)
		}
		if paid.whole && paid.cost != nil {
			s.Cost = new(cmp.Or(s.Cost, new(prices.USD)).Plus(*paid.cost))
		}
	}
	b.wake()
	return b.now()
}

// total returns the sum.
func (b *budget) total() Sum {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now()
}

func (b *budget) now() Sum {
	s := b.sum
	s.Spent, s.Reserved, s.ReservedUSD = b.spent.tokens, b.reserved.tokens, b.reserved.usd
	if s.SpentUSD != nil {
		s.SpentUSD = new(b.spent.usd)
	}
	return s
}

func (b *budget) set(caps Budget) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.caps = caps
	b.wake()
}

func (b *budget) wake() {
	close(b.changed)
	b.changed = make(chan struct{})
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

// tariff is the price of a request's model, nil if it is unknown.
type tariff struct {
	*prices.Price
	hour bool // the request may write to the provider's cache for an hour
}

// most is what a request of so many bytes costs at most if its answer has so many tokens.
// No token of text has less than a byte.
func (t tariff) most(body int, answer int64) amount {
	const largest = math.MaxInt64 >> 12 // so that no sum of reservations runs over
	all := amount{tokens: min(tokens.Plus(int64(body), answer), largest)}
	if t.Price != nil {
		all.usd = min(t.Most(int64(body), answer, t.hour), largest)
	}
	return all
}

// charge is what an answer costs: the reported usage, and if that is not all of it, the
// request's maximum or more. So leaving early saves nothing.
func (t tariff) charge(u tokens.Count, part bool, most amount) amount {
	all, told := u.All()
	if !told || part {
		all = max(all, most.tokens)
	}
	usd := t.cost(u)
	if usd != nil && !part {
		return amount{all, *usd}
	}
	u.Input, u.Candidates = cmp.Or(u.Input, new(int64)), cmp.Or(u.Candidates, new(int64))
	if least := t.cost(u); least != nil {
		most.usd = max(most.usd, *least)
	}
	return amount{all, most.usd}
}

// cost is the price of a usage, nil if it is unknown.
func (t tariff) cost(u tokens.Count) *prices.USD {
	if t.Price == nil {
		return nil
	}
	if usd, told := t.OfRequest(u); told {
		return &usd
	}
	return nil
}
