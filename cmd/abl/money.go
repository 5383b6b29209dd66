package main

import (
	"fmt"
	"strings"

	"abl/internal/config"
	"abl/internal/prices"
	"abl/internal/state"
	"abl/roles"
	"abl/roles/agent"
)

// capText says what the phase may spend.
func (s *session) capText() string {
	var caps []string
	for _, c := range []struct {
		what string
		cap  config.Cap
	}{{"call", s.conf.Budget.Call}, {"phase", s.conf.Budget.Phase}, {"project", s.conf.Budget.Project}} {
		if c.cap.Tokens > 0 {
			caps = append(caps, fmt.Sprintf("at most %d tokens a %s", c.cap.Tokens, c.what))
		}
		if usd := prices.Dollars(c.cap.USD); usd > 0 {
			caps = append(caps, fmt.Sprintf("at most %s USD a %s", usd, c.what))
		}
	}
	if len(caps) == 0 {
		return "no cap"
	}
	return strings.Join(caps, ", ")
}

// keyText says where a key was found, never what it is.
func (s *session) keyText(name string) string {
	_, from := s.key(name)
	if from == "" {
		return name + " is missing"
	}
	return fmt.Sprintf("%s from %s, held by the gateway", name, from)
}

// announce says, before the first paid call, who plays, what it may cost and
// what the last phases did cost.
func (s *session) announce(n int, f *state.File, out state.Sink) error {
	s.warnPending()
	var who []string
	for _, role := range roles.Both() {
		p, err := s.player(role)
		if err != nil {
			return err
		}
		text := fmt.Sprintf("%s %s (%s)", role.Name, p.Agent.Name(), p.Model)
		if vars, served := agent.ProviderOf(p.Agent); served {
			text += ", " + s.keyText(vars.KeyVar)
		}
		who = append(who, text)
	}
	out.Emit(state.Event{Kind: state.PhaseStart, Phase: n, Text: fmt.Sprintf("%s; %s; %s", strings.Join(who, "; "), s.capText(), s.lastCosts(f, n))})
	return nil
}
