package main

import (
	"fmt"
	"time"

	"abl/cmd/internal/money"
	"abl/orchestrator/event"
	"abl/orchestrator/ledger"
	"abl/orchestrator/state"
)

// ledger opens tokens.csv and makes sure that it can be written to.
func (s *session) ledger(out event.Sink) (money.Book, error) {
	list, err := s.pricing()
	if err != nil {
		return money.Book{}, err
	}
	b := money.Book{Ledger: ledger.Open(s.project.Ledger()), List: list, Hide: s.in.Outlet.Redact, Tell: func(text string) {
		out.Emit(event.Event{Time: time.Now().UTC(), Kind: event.Note, Text: text})
	}}
	return b, b.Ready()
}

// lastCost says what the phase that ran last did cost.
func (s *session) lastCost(f *state.File, n int) string {
	last, when := 0, time.Time{}
	for k := range f.Phases {
		var number int
		if _, err := fmt.Sscan(k, &number); err == nil && number != n && f.Phases[k].Ended.After(when) {
			last, when = number, f.Phases[k].Ended
		}
	}
	if last == 0 {
		return "no earlier phase to compare with"
	}
	used, err := s.spent(last, "")
	if err != nil || used.Phase.Tokens == 0 {
		return fmt.Sprintf("phase %d: tokens unknown", last)
	}
	text := fmt.Sprintf("phase %d took %d tokens", last, used.Phase.Tokens)
	if len(used.Phase.Unpriced) == 0 {
		text += fmt.Sprintf(", %s USD", used.Phase.USD.Short())
	}
	return text
}
