// Package tokens counts what models use. It holds the one Count that answers, calls
// and rows of the ledger embed; prices, files and providers may not be in it.
package tokens

import (
	"math"
	"slices"
)

// Count is what one answer used, or several added up. A nil number was not told; it
// is never a zero.
type Count struct {
	// Prompt tokens, cached ones included.
	Input *int64 `json:"input" yaml:"input" csv:"input,omitempty"`
	// Of these, read from the provider's cache.
	Cached *int64 `json:"cached" yaml:"cached" csv:"cached,omitempty"`
	// Output, without thoughts where they are told apart.
	Candidates *int64 `json:"candidates" yaml:"candidates" csv:"candidates,omitempty"`
	Thoughts   *int64 `json:"thoughts" yaml:"thoughts" csv:"thoughts,omitempty"`
	// Further prompt tokens, of tools that the provider ran.
	Tool  *int64 `json:"tool" yaml:"tool" csv:"tool,omitempty"`
	Total *int64 `json:"total" yaml:"total" csv:"total,omitempty"` // as the provider says

	// Of the input, written to the provider's cache.
	Written *int64 `json:"cache_written,omitempty" yaml:"-" csv:"-"`
	// Of these, written for an hour, which costs more than the usual five minutes.
	WrittenHour *int64 `json:"cache_written_1h,omitempty" yaml:"-" csv:"-"`
}

// None is the count of what is known to have used nothing.
func None() Count {
	return Count{Input: new(int64), Candidates: new(int64), Total: new(int64)}
}

// Numbers are the places of all numbers.
func (c *Count) Numbers() []**int64 {
	return []**int64{&c.Input, &c.Cached, &c.Candidates, &c.Thoughts, &c.Tool, &c.Total, &c.Written, &c.WrittenHour}
}

// Known says whether anything at all was told.
func (c Count) Known() bool { return c != Count{} }

// Used says whether any number is more than zero.
func (c Count) Used() bool {
	return slices.ContainsFunc(c.Numbers(), func(n **int64) bool { return *n != nil && **n > 0 })
}

// Sane is the count without the numbers below zero, which are none.
func (c Count) Sane() Count {
	for _, n := range c.Numbers() {
		if *n != nil && **n < 0 {
			*n = nil
		}
	}
	return c
}

// All is what was used in all: the total where there is one, else the sum of the
// parts. told is false while input or output is missing: the sum is a lower bound then.
func (c Count) All() (sum int64, told bool) {
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

// Add returns the sum of both. What one of them does not tell is as the other says.
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

// Plus stops at the largest number: a provider's nonsense shall not become a credit.
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
	sum, _ := Count{Input: c.Input, Candidates: c.Candidates, Thoughts: c.Thoughts, Tool: c.Tool}.All()
	if *c.Total > sum {
		c.Candidates = new(*c.Candidates + (*c.Total - sum))
	}
	c.Total = new(max(*c.Total, sum))
	return c
}

// WithoutThoughts is the count of a provider that counts thoughts among the output.
func (c Count) WithoutThoughts() Count {
	if c.Candidates != nil && c.Thoughts != nil && *c.Thoughts <= *c.Candidates {
		rest := *c.Candidates - *c.Thoughts
		c.Candidates = &rest
	}
	return c
}
