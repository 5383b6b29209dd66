package main

import (
	"fmt"
	"time"

	"abl/cmd/internal/money"
	"abl/internal/ledger"
	"abl/internal/pricelist"
	"abl/internal/prices"
	"abl/roles"
	"abl/roles/agent"
)

// pricing is what models cost in this project: its own prices before abl's.
func (s *session) pricing() (pricelist.List, error) {
	if s.list != nil {
		return *s.list, nil
	}
	list, err := money.Prices(s.project.Root, s.conf)
	if err == nil {
		s.list = &list
	}
	return list, err
}

// price is what a usage costs that an agent counted itself, which knows no prices.
func (s *session) price(u agent.Usage) (prices.USD, bool) {
	list, err := s.pricing()
	if err != nil {
		return 0, false
	}
	return money.CostOf(list, ledger.Row{Timestamp: ledger.Stamp(time.Now()), Model: u.Model, Source: ledger.CLI, Count: u.Count})
}

// checkPriced wants, under a cap in dollars, a price for every model that a gateway
// will let through: a cap that cannot be held is none.
func (s *session) checkPriced() error {
	if !s.conf.NeedsPrices() {
		return nil
	}
	list, err := s.pricing()
	if err != nil {
		return err
	}
	for _, role := range roles.Both() {
		p, err := s.player(role)
		if err != nil {
			return err
		}
		if _, served := agent.ProviderOf(p.Agent); !served {
			continue
		}
		for _, model := range p.Models() {
			if len(money.Of(list, []string{model})) == 0 {
				return money.Unpriced(fmt.Sprintf("the %s's model %s has no price", role.Name, model), model)
			}
		}
	}
	return nil
}
