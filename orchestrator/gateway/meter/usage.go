package meter

import "abl/internal/tokens"

// Usage is what was told so far.
func (m *Meter) Usage() tokens.Count {
	c := tokens.Count{
		Input: m.told(input).pointer(), Cached: m.told(cacheRead).pointer(), Candidates: m.told(output).pointer(),
		Thoughts: m.told(thoughts).pointer(), Tool: m.told(tool).pointer(), Total: m.told(total).pointer(),
		Written: m.told(cacheWrite).pointer(),
	}
	switch m.api {
	case Anthropic:
		if c.Input != nil { // what was read from the cache or written to it is not in it
			*c.Input += m.told(cacheRead).n + m.told(cacheWrite).n
			if sum, told := c.All(); told {
				c.Total = &sum
			}
		}
	case Responses, Chat:
		return c.WithoutThoughts()
	}
	return c
}

func (c count) pointer() *int64 {
	if !c.known {
		return nil
	}
	return &c.n
}
