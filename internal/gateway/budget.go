package gateway

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"sync"

	"abl/internal/usage"
)

// Sum is the usage of a call so far. Every line of the log contains it, so the newest line is
// enough even if earlier lines are lost.
type Sum struct {
	Model    string `json:"model,omitempty"` // of the last request
	Requests int64  `json:"requests"`        // that the provider may charge for
	Unknown  int64  `json:"unknown"`         // of these, requests whose usage was not reported, or not all of it

	Usage usage.Count `json:"usage,omitzero"`     // reported for the other requests
	Cost  *usage.USD  `json:"cost_usd,omitempty"` // of that usage; nil if the model has no price
	Part  usage.Count `json:"part,omitzero"`      // reported for the unknown ones

	// What the budgets count: the reported usage, and the reservation of an unknown request.
	// The dollars are nil if a model without a price was asked.
	Spent    int64      `json:"spent"`
	SpentUSD *usage.USD `json:"spent_usd,omitempty"`

	UnderWay    int64     `json:"under_way,omitempty"` // requests that have not ended
	Reserved    int64     `json:"reserved,omitempty"`  // for them, in tokens and dollars
	ReservedUSD usage.USD `json:"reserved_usd,omitempty"`

	Over string `json:"over,omitempty"` // why the gateway refused a request, if a bound was reached
}

// Most returns the most that the call can have used: the spent and the reserved amounts.
func (s Sum) Most() (all int64, usd *usage.USD) {
	if s.SpentUSD != nil {
		usd = new(s.SpentUSD.Plus(s.ReservedUSD))
	}
	return usage.Plus(s.Spent, s.Reserved), usd
}

// budget keeps a call within its bounds. Each request reserves its own maximum before it begins, so
// that at most one response exceeds a bound.
type budget struct {
	turn chan struct{} // the first waiting request has it

	mu       sync.Mutex
	caps     Budget
	changed  chan struct{} // closed when a request ends, or the bounds change
	sum      Sum
	spent    amount
	reserved amount
	requests int64 // that were admitted, including free ones
}

func newBudget(caps Budget) *budget {
	return &budget{
		turn:    make(chan struct{}, 1),
		caps:    caps,
		changed: make(chan struct{}),
		sum:     Sum{SpentUSD: new(usage.USD)},
	}
}

// admit reserves the maximum of a request, or returns why the request may not begin. It waits while
// other requests leave no room. Without other requests it only needs a bound that is not reached. A
// free request has no maximum and never waits.
func (b *budget) admit(ctx context.Context, most amount, priced bool) (why string, err error) {
	if most != (amount{}) { // in the order of arrival
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

// try admits a request, returns why it may not begin, or returns a channel to wait for.
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

// reached returns why no request may begin, or "". A bound in dollars admits no model without a
// price, because it could not limit it.
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

// fits reports whether the bounds hold even if this request and all current requests cost their
// maximum.
func (b *budget) fits(most amount) bool {
	for _, bound := range b.caps.Bounds {
		full := amount{bound.UsedTokens, bound.UsedUSD}.plus(b.spent).plus(b.reserved).plus(most)
		if bound.Tokens != nil && full.tokens > *bound.Tokens || bound.USD != nil && full.usd > *bound.USD {
			return false
		}
	}
	return true
}

// bill is the cost of one request.
type bill struct {
	charged amount // counted by the budgets
	usage   usage.Count
	cost    *usage.USD // nil if it is unknown
	whole   bool       // the usage is complete
}

// charge replaces a reservation with the bill, which is nil if the provider charges nothing. It
// returns the new sum.
func (b *budget) charge(most amount, model string, paid *bill) Sum {
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
			s.Cost = new(cmp.Or(s.Cost, new(usage.USD)).Plus(*paid.cost))
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

// now returns the current sums. The caller holds the turn.
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

// amount is a use of a model in tokens and in dollars. The dollars are 0 if the model has no price.
type amount struct {
	tokens int64
	usd    usage.USD
}

// plus adds without an overflow.
func (a amount) plus(b amount) amount {
	return amount{usage.Plus(a.tokens, b.tokens), a.usd.Plus(b.usd)}
}

// tariff is the price of a request's model, nil if it is unknown.
type tariff struct {
	*usage.Price
	hour bool // the request may write to the provider's cache for an hour
}

// most returns the maximum cost of a request with a body in bytes and a response in tokens. A token
// of text has at least one byte.
func (t tariff) most(body int, answer int64) amount {
	const largest = math.MaxInt64 >> 12 // prevents an overflow of sums
	all := amount{tokens: min(usage.Plus(int64(body), answer), largest)}
	if t.Price != nil {
		all.usd = min(t.Most(int64(body), answer, t.hour), largest)
	}
	return all
}

// charge returns the cost of a response: the reported usage, or if it is incomplete, at least the
// maximum of the request. So a client saves nothing by leaving early.
func (t tariff) charge(u usage.Count, part bool, most amount) amount {
	all, complete := u.All()
	if !complete || part {
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

// cost returns the price of a usage, nil if it is unknown.
func (t tariff) cost(u usage.Count) *usage.USD {
	if t.Price == nil {
		return nil
	}
	if usd, known := t.OfRequest(u); known {
		return &usd
	}
	return nil
}
