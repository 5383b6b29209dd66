package trial

// Tried is what came of one trial: attempts until the program ran.
type Tried struct {
	Task     string   `json:"task"`
	With     bool     `json:"with"` // the learned files
	Number   int      `json:"trial"`
	OK       bool     `json:"ok"`
	Attempts int      `json:"attempts"`
	Tokens   *int64   `json:"tokens"`   // null: not all were told
	CostUSD  *float64 `json:"cost_usd"` // null: not all have a price
	Failure  string   `json:"failure,omitempty"`
}

// Side is all trials with or without the learned files.
type Side struct {
	Trials   int      `json:"trials"`
	Good     int      `json:"good"`
	Success  Interval `json:"success"` // a share, Wilson
	Attempts float64  `json:"attempts"`
	Tokens   *float64 `json:"tokens"` // the mean, null unless all are known
	CostUSD  *float64 `json:"cost_usd"`
}

// Comparison is both sides, and with less without: Newcombe for success, a
// percentile bootstrap for the rest, each at 95 %.
type Comparison struct {
	Without  Side      `json:"without"`
	With     Side      `json:"with"`
	Success  Interval  `json:"success_difference"`
	Attempts *Interval `json:"attempts_difference"`
	Tokens   *Interval `json:"tokens_difference"`
	CostUSD  *Interval `json:"cost_usd_difference"`
	Verdict  Verdict   `json:"verdict"`
}

// Verdict is what can be said.
type Verdict string

// The verdicts. Success decides; attempts do where both succeed alike.
const (
	Pays    Verdict = "pays"
	Hurts   Verdict = "hurts"
	Unclear Verdict = "unclear"
)

// Compare puts trials side by side.
func Compare(all []Tried) Comparison {
	a, b := gather(all, true), gather(all, false)
	c := Comparison{With: a.side(), Without: b.side(), Verdict: Unclear}
	c.Success = Newcombe(c.With.Success, c.Without.Success)
	c.Attempts = difference(a.attempts, b.attempts, true)
	c.Tokens = difference(a.tokens, b.tokens, a.allTokens && b.allTokens)
	c.CostUSD = difference(a.cost, b.cost, a.allCost && b.allCost)
	switch {
	case c.Success.Low > 0:
		c.Verdict = Pays
	case c.Success.High < 0:
		c.Verdict = Hurts
	case c.Attempts != nil && c.Attempts.High < 0:
		c.Verdict = Pays
	case c.Attempts != nil && c.Attempts.Low > 0:
		c.Verdict = Hurts
	}
	return c
}

// sums are the figures of one side.
type sums struct {
	good                   int
	attempts, tokens, cost []float64
	allTokens, allCost     bool
}

func gather(all []Tried, with bool) sums {
	s := sums{allTokens: true, allCost: true}
	for _, t := range all {
		if t.With != with {
			continue
		}
		if t.OK {
			s.good++
		}
		s.attempts = append(s.attempts, float64(t.Attempts))
		if s.allTokens = s.allTokens && t.Tokens != nil; t.Tokens != nil {
			s.tokens = append(s.tokens, float64(*t.Tokens))
		}
		if s.allCost = s.allCost && t.CostUSD != nil; t.CostUSD != nil {
			s.cost = append(s.cost, *t.CostUSD)
		}
	}
	return s
}

func (s sums) side() Side {
	side := Side{Trials: len(s.attempts), Good: s.good, Success: Wilson(s.good, len(s.attempts)), Attempts: Mean(s.attempts)}
	if m := Mean(s.tokens); s.allTokens && len(s.tokens) > 0 {
		side.Tokens = &m
	}
	if m := Mean(s.cost); s.allCost && len(s.cost) > 0 {
		side.CostUSD = &m
	}
	return side
}

// difference is nil where not all is known: what is unknown is no 0.
func difference(a, b []float64, known bool) *Interval {
	i, ok := Bootstrap(a, b)
	if !ok || !known {
		return nil
	}
	return &i
}
