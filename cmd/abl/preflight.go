package main

import (
	"context"
	"errors"

	"abl/cmd/internal/exit"
	"abl/internal/config"
	"abl/orchestrator/ledger"
	"abl/orchestrator/spec"
	"abl/roles"
	"abl/roles/agent"
)

// preflight finds what keeps phase n from running, as far as looking tells:
// until it is through, nothing is locked, written, made or started.
func (s *session) preflight(ctx context.Context, specs spec.Set, n int, again bool) error {
	_, a, err := s.admission(specs, n, again)
	if err != nil || !a.Go {
		return err
	}
	for _, check := range []func() error{s.checkCaps, s.checkPlayers, s.checkLedger} {
		if err := check(); err != nil {
			return err
		}
	}
	eng, _, err := connect(ctx)
	if err != nil {
		return onEngine(err)
	}
	return eng.Close()
}

// checkCaps refuses a cap that this abl could not hold: better no run than one
// that seems capped.
func (s *session) checkCaps() error {
	if s.conf.NeedsPrices() {
		return fault(exit.Usage, errors.New("cannot hold a budget in US dollars: this abl knows no prices"),
			"give budget.phase.tokens or budget.project.tokens in .abl/config.yaml instead of usd")
	}
	if s.conf.Budget.Call != (config.Cap{}) {
		return fault(exit.Usage, errors.New("cannot hold budget.call: this abl learns what a call used when it has ended"),
			"give budget.phase.tokens or budget.project.tokens in .abl/config.yaml instead")
	}
	return nil
}

// checkPlayers wants, for each role, its agent, its prompt and its key.
func (s *session) checkPlayers() error {
	for _, role := range []roles.Role{roles.Builder, roles.Verifier} {
		p, err := s.player(role)
		if err != nil {
			return err
		}
		if name := agent.KeyName(p.Agent); name != "" {
			if _, from := s.key(name); from == "" {
				return noKey(name)
			}
		}
	}
	return nil
}

// checkLedger refuses a tokens.csv that is no ledger; what can be repaired is
// repaired when the phase starts.
func (s *session) checkLedger() error {
	return ledger.Open(s.project.Ledger()).Scan(func(ledger.Row) {}, func(int, string) {})
}
