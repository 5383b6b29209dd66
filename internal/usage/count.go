// Package usage counts the tokens that models use, and computes their exact cost in US dollars. Incomplete
// counts have no cost, which differs from a cost of 0. Package ledger has the prices of models.
package usage

import (
	"math"
	"slices"
)

// Count is the usage of one response, or of several together. A nil number is unknown, which
// differs from 0.
type Count struct {
	// Input is the number of prompt tokens, with cached ones.
	Input *int64 `json:"input" yaml:"input" csv:"input,omitempty"`
	// Cached is the part of Input that was read from the provider's cache.
	Cached *int64 `json:"cached" yaml:"cached" csv:"cached,omitempty"`
	// Candidates is the number of output tokens, without Thoughts.
	Candidates *int64 `json:"candidates" yaml:"candidates" csv:"candidates,omitempty"`
	Thoughts   *int64 `json:"thoughts" yaml:"thoughts" csv:"thoughts,omitempty"`
	// Tool is the number of additional prompt tokens of the provider's tools.
	Tool  *int64 `json:"tool" yaml:"tool" csv:"tool,omitempty"`
	Total *int64 `json:"total" yaml:"total" csv:"total,omitempty"` // as the provider reports it

	// Written is the part of Input that was written to the provider's cache.
	Written *int64 `json:"cache_written,omitempty" yaml:"-" csv:"-"`
	// WrittenHour is the part of Written for an hour, which costs more than the usual five minutes.
	WrittenHour *int64 `json:"cache_written_1h,omitempty" yaml:"-" csv:"-"`
}

// None returns the count of a response that is known to have used nothing.
func None() Count {
	return Count{Input: new(int64), Candidates: new(int64), Total: new(int64)}
}

// Numbers returns pointers to all numbers.
func (c *Count) Numbers() []**int64 {
	return []**int64{&c.Input, &c.Cached, &c.Candidates, &c.Thoughts, &c.Tool, &c.Total, &c.Written, &c.WrittenHour}
}

// Known reports whether any number is known.
func (c Count) Known() bool { return c != Count{} }

// Used reports whether any number is positive.
func (c Count) Used() bool {
	return slices.ContainsFunc(c.Numbers(), func(n **int64) bool { return *n != nil && **n > 0 })
}

// Sane returns c without negative counts, which are invalid.
func (c Count) Sane() Count {
	for _, n := range c.Numbers() {
		if *n != nil && **n < 0 {
			*n = nil
		}
	}
	return c
}

// All returns the number of all tokens: the total, or the sum of the parts. It returns false if
// that is incomplete.
func (c Count) All() (sum int64, complete bool) {
	if c.Total != nil {
		return *c.Total, true
	}
	for _, n := range []*int64{c.Input, c.Candidates, c.Thoughts, c.Tool} {
		if n != nil {
			sum = Plus(sum, *n)
		}
	}
	return sum, c.Input != nil && c.Candidates != nil
}

// Add returns the sum of both counts. A number that one of them does not have is that of the other.
func (c Count) Add(d Count) Count {
	var sum Count
	to, a, b := sum.Numbers(), c.Numbers(), d.Numbers()
	for i := range to {
		switch {
		case *a[i] == nil:
			*to[i] = *b[i]
		case *b[i] == nil:
			*to[i] = *a[i]
		default:
			n := Plus(**a[i], **b[i])
			*to[i] = &n
		}
	}
	return sum
}

// Plus returns the sum, at most the maximum number, so that a provider's invalid number cannot
// become negative.
func Plus(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// ByTotal adds to the output the tokens that only the total contains: some servers report
// thoughts in addition to the output. It replaces a total that is less than its parts by their sum.
func (c Count) ByTotal() Count {
	if c.Input == nil || c.Candidates == nil || c.Total == nil {
		return c
	}
	sum, _ := Count{
		Input:      c.Input,
		Candidates: c.Candidates,
		Thoughts:   c.Thoughts,
		Tool:       c.Tool,
	}.All()
	if *c.Total > sum {
		c.Candidates = new(*c.Candidates + (*c.Total - sum))
	}
	c.Total = new(max(*c.Total, sum))
	return c
}

// WithoutThoughts subtracts the thoughts from the output, for a provider that includes them there.
func (c Count) WithoutThoughts() Count {
	if c.Candidates != nil && c.Thoughts != nil && *c.Thoughts <= *c.Candidates {
		rest := *c.Candidates - *c.Thoughts
		c.Candidates = &rest
	}
	return c
}
