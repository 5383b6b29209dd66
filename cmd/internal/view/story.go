package view

import (
	"time"

	"abl/cmd/internal/exit"
	"abl/internal/prices"
	"abl/internal/state"
)

// story is what the events so far come to.
type story struct {
	began     time.Time // of this run of abl
	phase     int
	iteration int
	role      string    // whose call runs, "" between calls
	actions   int       // of that call
	doing     string    // its last action, in the agent's words; else the last fact
	underWay  string    // what goes on without an agent, "" for nothing
	since     time.Time // when that began
	tokens    int64
	unknown   bool // some usage is not known
	usd       prices.USD
	priced    bool // some usage has a price
	unpriced  bool // some has none that is known
	refused   bool // nothing was begun: there is an error and no story
}

// take enters an event.
func (s *story) take(e state.Event) {
	if s.began.IsZero() {
		s.began = e.Time
		s.refused = e.Kind == state.Outcome && e.Exit != nil && *e.Exit != exit.Passed
	}
	if e.Phase != 0 {
		s.phase = e.Phase
	}
	if e.Iteration != 0 {
		s.iteration = e.Iteration
	}
	s.underWay = ""
	switch e.Kind {
	case state.Progress:
		s.underWay, s.since = e.Text, e.Time
	case state.CallStart, state.CallResume:
		s.role, s.actions, s.doing = e.Role, 0, ""
	case state.Action:
		s.actions++
		s.doing = e.Text
	case state.CallEnd:
		s.role, s.doing = "", ""
	case state.Wait:
		s.role, s.doing = "", waitWords(e)
	case state.Usage:
		if e.Tokens == nil {
			s.unknown = true
		} else {
			s.tokens += *e.Tokens
		}
		s.pay(e.CostUSD)
	}
}

// pay enters what a usage cost.
func (s *story) pay(cost string) {
	if cost == "" {
		return
	}
	usd, err := prices.Parse(cost)
	if err != nil {
		s.unpriced = true
		return
	}
	s.usd, s.priced = s.usd.Plus(usd), true
}

// counted says that there is something to say about tokens: they are known at
// the end of a call only.
func (s *story) counted() bool { return s.tokens > 0 || s.unknown }

// elapsed is how long this run of abl has been going on at a moment.
func (s *story) elapsed(now time.Time) time.Duration {
	if s.began.IsZero() {
		return 0
	}
	return max(now.Sub(s.began), 0)
}
