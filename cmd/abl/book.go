package main

import (
	"errors"
	"fmt"
	"time"

	"abl/cmd/internal/exit"
	"abl/internal/config"
	"abl/orchestrator/event"
	"abl/orchestrator/ledger"
	"abl/orchestrator/state"
)

// book is the ledger as the loop uses it; what it had to repair is told.
type book struct {
	*ledger.Ledger
	out event.Sink
}

// ledger opens tokens.csv and makes sure that it can be written to.
func (s *session) ledger(out event.Sink) (book, error) {
	b := book{ledger.Open(s.project.Ledger()), out}
	notices, err := b.EnsureHeader()
	b.tell(notices)
	return b, err
}

// Append enters the rows of one call.
func (b book) Append(rows []ledger.Row) error {
	notices, err := b.Ledger.Append(rows)
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

// errBudget means that a cap is reached.
var errBudget = errors.New("the budget is reached")

// tokens adds up what is counted: of one phase, or of all with phase "".
func (b book) tokens(phase string) (sum int64, err error) {
	err = b.Scan(func(r ledger.Row) {
		if r.Total != nil && (phase == "" || r.Phase == phase) {
			sum += *r.Total
		}
	}, func(int, string) {})
	return sum, err
}

// budget is asked before every call whether there is anything left to spend.
func (st *stage) budget(b book) func(*state.Phase) error {
	return func(*state.Phase) error {
		for _, c := range []struct {
			what, phase string
			cap         config.Cap
		}{{"phase", fmt.Sprint(st.phase), st.conf.Budget.Phase}, {"project", "", st.conf.Budget.Project}} {
			if c.cap.Tokens <= 0 {
				continue
			}
			used, err := b.tokens(c.phase)
			if err != nil {
				return err
			}
			if used >= c.cap.Tokens {
				return &exit.Error{Code: exit.Budget, Err: errBudget, Safe: "everything is committed",
					What: fmt.Sprintf("%v: %d of %d tokens of the %s are used", errBudget, used, c.cap.Tokens, c.what),
					Do:   fmt.Sprintf("raise budget.%s.tokens in .abl/config.yaml and run the same command again", c.what)}
			}
		}
		return nil
	}
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
	used, err := book{Ledger: ledger.Open(s.project.Ledger())}.tokens(fmt.Sprint(last))
	if err != nil || used == 0 {
		return fmt.Sprintf("phase %d: tokens unknown", last)
	}
	return fmt.Sprintf("phase %d took %d tokens", last, used)
}
