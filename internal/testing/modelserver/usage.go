package modelserver

// Usage holds token counts. If Total is 0, the total is the sum of the others.
type Usage struct {
	Prompt, Candidates, Thoughts, Cached, Tool, Total int64
}

// part returns the share of response k of n, counted from 0. The shares add up to the whole.
func (u Usage) part(k, n int) Usage {
	share := func(whole int64) int64 {
		k, n := int64(k), int64(n)
		return whole*(k+1)/n - whole*k/n
	}
	p := Usage{
		Prompt:     share(u.Prompt),
		Candidates: share(u.Candidates),
		Thoughts:   share(u.Thoughts),
		Cached:     share(u.Cached),
		Tool:       share(u.Tool),
	}
	if p.Total = share(u.Total); u.Total == 0 || u.Total == u.sum() {
		p.Total = p.sum()
	}
	return p
}

func (u Usage) sum() int64 { return u.Prompt + u.Candidates + u.Thoughts + u.Tool }

// metadata returns the usage in the format of the API.
func (u Usage) metadata() map[string]any {
	m := map[string]any{
		"promptTokenCount":     u.Prompt,
		"candidatesTokenCount": u.Candidates,
		"totalTokenCount":      u.Total,
	}
	for name, n := range map[string]int64{
		"thoughtsTokenCount":      u.Thoughts,
		"cachedContentTokenCount": u.Cached,
		"toolUsePromptTokenCount": u.Tool,
	} {
		if n > 0 { // the API omits counts of 0
			m[name] = n
		}
	}
	return m
}
