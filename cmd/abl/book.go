package main

import (
	"fmt"
	"time"

	"abl/orchestrator/event"
	"abl/orchestrator/ledger"
	"abl/orchestrator/pricelist"
	"abl/orchestrator/state"
)

// book is the ledger as the loop uses it; what it had to repair is told.
type book struct {
	*ledger.Ledger
	out  event.Sink
	hide func(string) string // takes secrets out of what agents said
	list pricelist.List
}

// ledger opens tokens.csv and makes sure that it can be written to.
func (s *session) ledger(out event.Sink) (book, error) {
	list, err := s.pricing()
	if err != nil {
		return book{}, err
	}
	b := book{ledger.Open(s.project.Ledger()), out, s.in.Outlet.Redact, list}
	notices, err := b.EnsureHeader()
	b.tell(notices)
	return b, err
}

// Append enters the rows of one call.
func (b book) Append(rows []ledger.Row) error {
	safe := make([]ledger.Row, len(rows))
	for i, r := range rows {
		if safe[i] = r.Map(b.hide); r.CostUSD == ledger.Unknown { // counted by the agent, which knows no prices
			if usd, known := costOf(b.list, r); known {
				safe[i].CostUSD = usd.String()
			}
		}
	}
	notices, err := b.Ledger.Append(safe)
	b.tell(notices)
	return err
}

func (b book) tell(notices []ledger.Notice) {
	for _, n := range notices {
		b.out.Emit(event.Event{Time: time.Now().UTC(), Kind: event.Note, Text: noticeText(n)})
	}
}

func noticeText(n ledger.Notice) string {
	if n.Line == 0 {
		return "tokens.csv: " + n.Text
	}
	return fmt.Sprintf("tokens.csv line %d: %s", n.Line, n.Text)
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
	if err != nil || used.phase.tokens == 0 {
		return fmt.Sprintf("phase %d: tokens unknown", last)
	}
	text := fmt.Sprintf("phase %d took %d tokens", last, used.phase.tokens)
	if len(used.phase.unpriced) == 0 {
		text += fmt.Sprintf(", %s USD", used.phase.usd.Short())
	}
	return text
}
