package main

import (
	"errors"
	"fmt"
	"time"

	"abl/cmd/internal/exit"
	"abl/internal/safefile"
	"abl/orchestrator/ledger"
	"abl/orchestrator/pricelist"
	"abl/orchestrator/prices"
	"abl/roles"
	"abl/roles/agent"
)

// maxPrices bounds a project's own list, in bytes.
const maxPrices = 1 << 20

// pricing is what models cost in this project: its own prices before abl's.
func (s *session) pricing() (pricelist.List, error) {
	if s.list != nil {
		return *s.list, nil
	}
	list, err := pricelist.Default()
	if err != nil {
		return list, fmt.Errorf("internal error: %w", err)
	}
	if list, err = s.ownPrices(list); err != nil {
		return list, fault(exit.Usage, err, hint(err))
	}
	s.list = &list
	return list, nil
}

func (s *session) ownPrices(list pricelist.List) (pricelist.List, error) {
	if file := s.conf.Prices.File; file != "" {
		data, err := safefile.Read(s.project.Root, file, maxPrices)
		if errors.Is(err, safefile.ErrAbsent) {
			return list, s.conf.Wrong("prices", "make it, or take the setting away", fmt.Errorf("there is no file %q", file))
		}
		if err != nil {
			return list, err
		}
		own, err := pricelist.Parse(file, data)
		return list.With(own), err
	}
	for _, name := range s.conf.Prices.Models() {
		own, err := pricelist.Own(name, s.conf.Prices.Own[name])
		if err != nil {
			return list, s.conf.Wrong("prices."+name, "in US dollars for a million tokens: {input: 1.25, cached: 0.125, output: 10}", err)
		}
		list = list.With(own)
	}
	return list, nil
}

// costOf is what a row costs: as it says, else by the prices of its day. A price
// that came later is as good as one that was there.
func costOf(list pricelist.List, r ledger.Row) (prices.USD, bool) {
	if usd, known := r.Cost(); known {
		return usd, true
	}
	price, known := list.At(r.Model, r.When())
	if !known || r.Source == ledger.Nobody {
		return 0, false
	}
	return price.OfMany(prices.Tokens{Input: r.Input, Cached: r.Cached, Output: r.Candidates, Thoughts: r.Thoughts, Tool: r.Tool, Total: r.Total})
}

// modelPrices are the prices of a provider's models now.
func (s *session) modelPrices(models []string) (map[string]prices.Price, error) {
	list, err := s.pricing()
	if err != nil {
		return nil, err
	}
	all := map[string]prices.Price{}
	for _, m := range models {
		if p, known := list.At(m, time.Now()); known {
			all[m] = p
		}
	}
	return all, nil
}

// checkPriced wants, under a cap in dollars, a price for every model that a gateway
// will let through: a cap that cannot be held is none.
func (s *session) checkPriced() error {
	if !s.conf.NeedsPrices() {
		return nil
	}
	for _, role := range []roles.Role{roles.Builder, roles.Verifier} {
		p, err := s.player(role)
		if err != nil {
			return err
		}
		if _, served := agent.ProviderOf(p.Agent); !served {
			continue
		}
		for _, model := range s.chain(role, p.Model) {
			known, err := s.modelPrices([]string{model})
			if err != nil {
				return err
			}
			if len(known) == 0 {
				return unpriced(fmt.Sprintf("the %s's model %s has no price", role.Name, model), model)
			}
		}
	}
	return nil
}

// chain are all models that a role may fall back on.
func (s *session) chain(role roles.Role, first string) []string {
	models := s.conf.Models.Builder
	if role.Name == roles.Verifier.Name {
		models = s.conf.Models.Verifier
	}
	if len(models) == 0 {
		models = []string{first}
	}
	return models
}

func unpriced(why, model string) error {
	return fault(exit.Usage, fmt.Errorf("cannot hold a budget in US dollars: %s", why),
		fmt.Sprintf("add prices: {%s: {input: 1.25, output: 10}}, dollars for a million tokens, to .abl/config.yaml, or give the budget in tokens", model))
}
