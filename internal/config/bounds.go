package config

import (
	"math"
	"time"
)

// maxIterations keeps a slip of the finger from costing a fortune.
const maxIterations = 100

func checkLoop(l *Loaded) error {
	if n := l.Loop.MaxVerifierIterations; n < 1 || n > maxIterations {
		return l.mistake("loop.max_verifier_iterations", "", "want 1 to %d, got %d", maxIterations, n)
	}
	for key, n := range byKey(map[string]int{"loop.no_progress.failed": l.Loop.NoProgress.Failed, "loop.no_progress.unverified": l.Loop.NoProgress.Unverified}) {
		if n < 0 {
			return l.mistake(key, "", "want 0 (off) or more, got %d", n)
		}
	}
	for key, d := range byKey(map[string]Duration{
		"loop.call_timeout": l.Loop.CallTimeout, "loop.idle_timeout": l.Loop.IdleTimeout,
	}) {
		if time.Duration(d) < time.Second {
			return l.mistake(key, "", "want 1s or more, got %s", time.Duration(d))
		}
	}
	if l.Loop.OutageBudget < 0 {
		return l.mistake("loop.outage_budget", "", "want 0 or more, got %s", time.Duration(l.Loop.OutageBudget))
	}
	return nil
}

func checkLimits(l *Loaded) error {
	const smallest = 16 << 20 // a container with less does not start
	if l.Limits.Memory < smallest {
		return l.mistake("limits.memory", "", "want 16m or more")
	}
	if !(l.Limits.CPUs > 0 && l.Limits.CPUs < 1<<20) { // .nan is neither
		return l.mistake("limits.cpus", "", "want more than 0, got %g", l.Limits.CPUs)
	}
	for key, n := range byKey(map[string]int64{
		"limits.pids":     l.Limits.Pids,
		"limits.requests": l.Limits.Requests,
		"limits.disk":     int64(l.Limits.Disk),
		"limits.inodes":   l.Limits.Inodes,
		"limits.output":   int64(l.Limits.Output),
		"limits.file":     int64(l.Limits.File),
	}) {
		if n <= 0 {
			return l.mistake(key, "", "want more than 0, got %d", n)
		}
	}
	return nil
}

func checkBudget(l *Loaded) error {
	for key, c := range byKey(l.caps()) {
		if c.Tokens < 0 || !(c.USD >= 0) || math.IsInf(c.USD, 0) { // .nan is no number
			return l.mistake(key, "", "want 0 (no limit) or more")
		}
	}
	return nil
}

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
