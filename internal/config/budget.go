package config

func (c *Config) caps() map[string]Cap {
	return map[string]Cap{"budget.call": c.Budget.Call, "budget.phase": c.Budget.Phase, "budget.project": c.Budget.Project}
}

// Raise adds to every cap that is set, and says whether there was one in tokens or
// in dollars to raise.
func (b *Budget) Raise(tokens int64, usd float64) (inTokens, inDollars bool) {
	for _, c := range []*Cap{&b.Call, &b.Phase, &b.Project} {
		if c.Tokens > 0 {
			c.Tokens, inTokens = c.Tokens+tokens, true
		}
		if c.USD > 0 {
			c.USD, inDollars = c.USD+usd, true
		}
	}
	return inTokens, inDollars
}

// NeedsPrices says whether a budget is given in money, which can be held only
// where the price of every model is known.
func (c *Config) NeedsPrices() bool {
	for _, limit := range c.caps() {
		if limit.USD > 0 {
			return true
		}
	}
	return false
}
