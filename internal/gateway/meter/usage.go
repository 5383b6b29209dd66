package meter

import (
	"strconv"

	"abl/internal/tokens"
)

// most is the largest number that is taken for a count: no sum of a few can wrap.
const most = 1_000_000_000_000_000_000

// report takes a count of an event. Counts are of the whole answer so far, and a later event
// replaces an earlier one. A 0 never replaces a count: servers that imitate an API send zeros
// in their last event for what an earlier event has reported.
func report(to **int64, value []byte) {
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || n < 0 || n > most || n == 0 && *to != nil {
		return
	}
	*to = &n
}

// Usage returns the tokens that the answer has reported so far. Where counts contradict each
// other, the larger reading counts, so that a budget never counts too little.
func (m *Meter) Usage() tokens.Count {
	m.settle()
	c := m.usage
	switch m.api {
	case Anthropic:
		c = m.whole(c)
	case Responses, Chat:
		c = c.WithoutThoughts()
	}
	if value(c.Input) == 0 && value(c.Candidates) > 0 {
		c.Input, c.Total = nil, nil // no prompt is empty: the server does not count it
	}
	return c.ByTotal()
}

// whole returns a count of Anthropic's, whose input_tokens leave out the tokens that were read
// from the cache or written to it, and which has no total.
func (m *Meter) whole(c tokens.Count) tokens.Count {
	if value(c.WrittenHour) > value(c.Written) {
		c.Written = c.WrittenHour
	}
	if c.Candidates != nil && value(m.first) > *c.Candidates {
		c.Candidates = m.first
	}
	if c.Input == nil {
		return c
	}
	for _, n := range []*int64{c.Cached, c.Written} {
		c.Input = tokens.Count{Input: c.Input}.Add(tokens.Count{Input: n}).Input
	}
	if sum, complete := c.All(); complete {
		c.Total = &sum
	}
	return c
}

func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}
