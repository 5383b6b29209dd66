package main

import (
	"fmt"

	"abl/cmd/internal/money"
	"abl/internal/state"
	"abl/roles"
)

// spent is what counts towards the caps of a call of phase n; key may be "".
func (s *session) spent(n int, key string) (money.Spendings, error) {
	list, err := s.pricing()
	if err != nil {
		return money.Spendings{}, err
	}
	return money.Spent(s.project, list, n, key)
}

// accounts is what the calls of the phase may spend.
func (r *phaseRun) accounts() *money.Account {
	return &money.Account{
		Conf: r.conf, Used: func(key string) (money.Spendings, error) { return r.spent(r.phase, key) },
		Words: money.Words{Again: fmt.Sprintf("abl phase %d", r.phase), Safe: "everything is committed"}, Tell: r.note,
	}
}

// budget is asked before every call whether there is anything left to spend.
func (r *phaseRun) budget(p *state.Phase) error { return r.account.Admit(callOf(r.phase, p)) }

// callOf is the key of the call that a phase is about to make.
func callOf(n int, p *state.Phase) string {
	role := roles.Builder
	if p.Status == state.Verifying {
		role = roles.Verifier
	}
	return roles.Key(n, role, p.Step, p.Attempt)
}
