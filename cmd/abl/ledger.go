package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"abl/cmd/internal/money"
	"abl/internal/ledger"
	"abl/internal/state"
)

// ledger opens tokens.csv and makes sure that it can be written to.
func (s *session) ledger(out state.Sink) (money.Book, error) {
	list, err := s.pricing()
	if err != nil {
		return money.Book{}, err
	}
	b := money.Book{Ledger: ledger.Open(s.project.Ledger()), List: list, Hide: s.in.Safe.Redact, Tell: func(text string) {
		out.Emit(state.Event{Time: time.Now().UTC(), Kind: state.Note, Text: text})
	}}
	return b, b.Ready()
}

// lastCosts says what the phases that ran last did cost, but for phase n.
func (s *session) lastCosts(f *state.File, n int) string {
	const most = 3
	var phases []int
	for k, p := range f.Phases {
		if number, err := strconv.Atoi(k); err == nil && number != n && !p.Ended.IsZero() {
			phases = append(phases, number)
		}
	}
	ended := func(n int) time.Time { return f.Phases[strconv.Itoa(n)].Ended }
	slices.SortFunc(phases, func(a, b int) int { return ended(b).Compare(ended(a)) })
	var texts []string
	for _, last := range phases[:min(most, len(phases))] {
		texts = append(texts, s.costText(last))
	}
	if len(texts) == 0 {
		return "no earlier phase to compare with"
	}
	return strings.Join(texts, ", ")
}

// costText says what a phase did cost, as budgets count.
func (s *session) costText(n int) string {
	used, err := s.spent(n, "")
	switch {
	case err != nil || used.Phase.Tokens == 0:
		return fmt.Sprintf("phase %d: tokens unknown", n)
	case len(used.Phase.Unpriced) > 0:
		return fmt.Sprintf("phase %d took %d tokens", n, used.Phase.Tokens)
	}
	return fmt.Sprintf("phase %d took %d tokens and %s USD", n, used.Phase.Tokens, used.Phase.USD.Short())
}
