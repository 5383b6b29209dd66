package main

import (
	"fmt"

	"abl/cmd/internal/money"
	"abl/orchestrator/gateway"
	"abl/orchestrator/state"
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

// caps are those of a call, with what is used of them.
func (r *phaseRun) caps(key string) ([]money.Cap, error) {
	used, err := r.spent(r.phase, key)
	return money.Caps(r.conf.Budget, used), err
}

// budget is asked before every call whether there is anything left to spend.
func (r *phaseRun) budget(p *state.Phase) error {
	caps, err := r.caps(callOf(r.phase, p))
	if err != nil {
		return err
	}
	return money.Admit(caps, money.Words{Again: fmt.Sprintf("abl phase %d", r.phase), Safe: "everything is committed"}, r.warner.Warn)
}

// callOf is the key of the call that a phase is about to make.
func callOf(n int, p *state.Phase) string {
	role := roles.Builder
	if p.Status == state.Verifying {
		role = roles.Verifier
	}
	return roles.Key(n, role, p.Step, p.Attempt)
}

// tellSpent says at the end which caps are nearly spent, or are passed and by how
// much: the last request may go beyond one.
func (r *phaseRun) tellSpent() {
	caps, err := r.caps("")
	if err != nil {
		return // the run has said so, or the next one will
	}
	for _, c := range caps {
		r.warner.Warn(c.Nearly()...)
	}
}

// left is what a call may spend, as its gateway is told.
func (r *phaseRun) left(key string) (gateway.Budget, error) {
	caps, err := r.caps(key)
	return money.Left(r.conf.Limits.Requests, caps), err
}
