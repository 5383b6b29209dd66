package meter

import (
	"strconv"

	"abl/internal/usage"
)

// most is the largest valid count. Sums of a few counts cannot overflow.
const most = 1_000_000_000_000_000_000

// report records a count of an event. Counts are totals of the response so far, so a later count
// replaces an earlier one. A 0 never replaces a count: servers that imitate an API send zeros in their
// last event for counts that an earlier event reported.
func report(to **int64, value []byte) {
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || n < 0 || n > most || n == 0 && *to != nil {
		return
	}
	*to = &n
}

// Usage returns the usage that the response has reported so far. If counts contradict each other, it
// uses the larger ones, so that a budget never counts too little.
func (m *Meter) Usage() usage.Count {
	m.flush()
	c := m.usage
	switch m.api {
	case Anthropic:
		c = m.whole(c)
	case Responses, Chat:
		c = c.WithoutThoughts()
	}
	if value(c.Input) == 0 && value(c.Candidates) > 0 {
		c.Input, c.Total = nil, nil // no prompt is empty, so the server does not count it
	}
	return c.ByTotal()
}

// whole completes a count of Anthropic. Its input_tokens do not include the tokens that were read from
// the cache or written to it, and it has no total.
func (m *Meter) whole(c usage.Count) usage.Count {
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
		c.Input = usage.Count{Input: c.Input}.Add(usage.Count{Input: n}).Input
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
