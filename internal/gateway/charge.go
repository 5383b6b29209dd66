package gateway

import (
	"abl/internal/prices"
	"abl/internal/tokens"
)

// What a request is thought to cost before its provider has told: a token has
// about four bytes, and an answer some length.
const (
	bytesPerToken = 4
	answerTokens  = 1000
)

// tariff is what a request's model costs; unknown where nobody said.
type tariff struct {
	prices.Price
	known bool
}

// estimate is what a request of so many bytes is thought to cost, of whose answer
// so many tokens went by.
func estimate(body int, passed int64, free bool, t tariff) amount {
	if free {
		return amount{}
	}
	input, output := int64(body)/bytesPerToken, max(passed, answerTokens)
	guess := amount{tokens: input + output}
	if t.known {
		guess.usd, _ = t.OfRequest(tokens.Count{Input: &input, Candidates: &output})
	}
	return guess
}

// charge is what an answer costs: as told, and where that is not the whole, the
// estimate if it is more. So nobody gets tokens for nothing by leaving early.
func charge(u tokens.Count, part bool, guess amount, t tariff) amount {
	all, told := u.All()
	if !told || part {
		all = max(all, guess.tokens)
	}
	usd := guess.usd
	if cost := t.cost(u); cost != nil && !part {
		usd = *cost
	} else if least, known := t.atLeast(u); known {
		usd = max(usd, least)
	}
	return amount{all, usd}
}

// cost is the price of a usage that was told whole, nil where it is unknown.
func (t tariff) cost(u tokens.Count) *prices.USD {
	if !t.known {
		return nil
	}
	if usd, told := t.OfRequest(u); told {
		return &usd
	}
	return nil
}

// atLeast is the price of the part that was told.
func (t tariff) atLeast(u tokens.Count) (prices.USD, bool) {
	if !t.known {
		return 0, false
	}
	if u.Input == nil {
		u.Input = new(int64)
	}
	if u.Candidates == nil {
		u.Candidates = new(int64)
	}
	return t.OfRequest(u)
}
