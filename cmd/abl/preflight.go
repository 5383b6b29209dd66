package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"abl/cmd/internal/exit"
	"abl/internal/ledger"
	"abl/internal/spec"
	"abl/roles"
	"abl/roles/agent"
	"abl/roles/environment"
)

// preflight finds what keeps phase n from running, as far as looking tells:
// until it is through, nothing of the project's is locked, written, made or
// started. An engine that abl does not know yet has to show its networks.
func (s *session) preflight(ctx context.Context, specs spec.Set, n int, again bool) error {
	_, a, err := s.admission(specs, n, again)
	if err != nil || !a.Go {
		return err
	}
	for _, check := range []func() error{s.checkCaps, s.checkPlayers, s.checkLedger, s.checkImages} {
		if err := check(); err != nil {
			return err
		}
	}
	s.warnShared(ctx)
	return s.proveNetworks(ctx)
}

// checkCaps refuses a cap that this abl could not hold: better no run than one
// that seems capped. The project's prices have to be readable in any case.
func (s *session) checkCaps() error {
	if _, err := s.pricing(); err != nil {
		return err
	}
	return s.checkPriced()
}

// checkPlayers wants, for each role, its agent, its prompt and its key.
func (s *session) checkPlayers() error {
	for _, role := range roles.Both() {
		p, err := s.player(role)
		if err != nil {
			return err
		}
		if vars, served := agent.ProviderOf(p.Agent); served {
			if _, from := s.key(vars.KeyVar); from == "" {
				return exit.With(exit.Usage, fmt.Errorf("cannot find %s", vars.KeyVar), fmt.Sprintf("add %s=… to .env, or choose another agent in .abl/config.yaml", vars.KeyVar))
			}
			raw, _ := s.key(vars.BaseVar)
			if _, _, err := environment.Override(vars, raw); err != nil {
				return err
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

// pendingSettings are the settings that this version reads and does not act on. A person
// who sets one is told, rather than left to believe in it.
func pendingSettings() []string {
	return []string{
		"loop.require_approval",
	}
}

// warnPending names the settings of the person's that have no effect.
func (s *session) warnPending() {
	var idle []string
	for key := range s.conf.Sources {
		if slices.ContainsFunc(pendingSettings(), func(k string) bool { return key == k || strings.HasPrefix(key, k+".") }) {
			idle = append(idle, key)
		}
	}
	slices.Sort(idle)
	if len(idle) > 0 {
		s.in.Warn("this version does not act on " + strings.Join(idle, ", "))
	}
}
