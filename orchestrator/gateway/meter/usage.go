package meter

import "math"

// Usage is the token count of one answer, or of several added up. A nil pointer
// means that the provider did not tell; it is never a zero.
type Usage struct {
	Input      *int64 `json:"input"`      // prompt tokens, cached ones included
	Cached     *int64 `json:"cached"`     // of these, read from the provider's cache
	Candidates *int64 `json:"candidates"` // output, without thoughts where the provider tells them apart
	Thoughts   *int64 `json:"thoughts"`
	Tool       *int64 `json:"tool"`  // prompt tokens that came from tools the provider ran
	Total      *int64 `json:"total"` // as the provider says; the sum where its API has no total

	Written *int64 `json:"cache_written,omitempty"` // part of input, written to the provider's cache; where it tells
}

// Usage is what was told so far.
func (m *Meter) Usage() Usage {
	u := Usage{
		Input: m.told(input).pointer(), Cached: m.told(cacheRead).pointer(), Candidates: m.told(output).pointer(),
		Thoughts: m.told(thoughts).pointer(), Tool: m.told(tool).pointer(), Total: m.told(total).pointer(),
		Written: m.told(cacheWrite).pointer(),
	}
	switch m.api {
	case Anthropic:
		if u.Input != nil { // what was read from the cache or written to it is not in it
			*u.Input += m.told(cacheRead).n + m.told(cacheWrite).n
			if u.Candidates != nil {
				sum := *u.Input + *u.Candidates
				u.Total = &sum
			}
		}
	case Responses, Chat:
		if u.Candidates != nil && u.Thoughts != nil && *u.Thoughts <= *u.Candidates {
			*u.Candidates -= *u.Thoughts
		}
	}
	return u
}

func (c count) pointer() *int64 {
	if !c.known {
		return nil
	}
	return &c.n
}

// Known says whether the provider told anything at all.
func (u Usage) Known() bool {
	for _, n := range u.numbers() {
		if *n != nil {
			return true
		}
	}
	return false
}

// Tokens is what the answer costs in tokens: the total where there is one, else
// the sum of what is known. told is false while input or output is missing, so
// that the figure is only a lower bound.
func (u Usage) Tokens() (tokens int64, told bool) {
	if u.Total != nil {
		return *u.Total, true
	}
	for _, n := range []*int64{u.Input, u.Candidates, u.Thoughts, u.Tool} {
		if n != nil {
			tokens += *n
		}
	}
	return tokens, u.Input != nil && u.Candidates != nil
}

// Add returns the sum of both. What one of them does not tell is as the other
// says: a lower bound, which Known answers alone can turn into a count.
func (u Usage) Add(v Usage) Usage {
	var sum Usage
	to, a, b := sum.numbers(), u.numbers(), v.numbers()
	for i := range to {
		if *a[i] == nil && *b[i] == nil {
			continue
		}
		n := value(*a[i]) + value(*b[i])
		if n < 0 { // past what fits: a provider's nonsense shall not become a credit
			n = math.MaxInt64
		}
		*to[i] = &n
	}
	return sum
}

func (u *Usage) numbers() []**int64 {
	return []**int64{&u.Input, &u.Cached, &u.Candidates, &u.Thoughts, &u.Tool, &u.Total, &u.Written}
}

func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}
