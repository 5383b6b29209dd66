package phase

import (
	"fmt"
	"strings"
	"time"

	"abl/cmd/internal/money"
	"abl/internal/config"
	"abl/internal/ledger"
	"abl/internal/prices"
	"abl/internal/state"
	"abl/orchestrator"
	"abl/roles"
	"abl/roles/agent"
	"abl/roles/environment"
)

// openLedger opens tokens.csv and makes sure that it can be written to.
func (r *Run) openLedger() error {
	list, err := r.Prices()
	if err != nil {
		return err
	}
	tell := func(text string) { r.emit(state.Event{Text: text}) }
	r.book = money.Book{Ledger: ledger.Open(r.Paths.Ledger()), List: list, Hide: r.In.Safe.Redact, Tell: tell}
	return r.book.Ready()
}

// CostOf is what a row costs here.
func (s *Project) CostOf(r ledger.Row) (prices.USD, bool) {
	list, err := s.Prices()
	if err != nil {
		return 0, false
	}
	return money.CostOf(list, r)
}

// price is what a usage costs that an agent counted itself, which knows no prices.
func (r *Run) price(u agent.Usage) (prices.USD, bool) {
	return r.CostOf(ledger.Row{Timestamp: ledger.Stamp(time.Now()), Model: u.Model, Source: ledger.CLI, Count: u.Count})
}

// CheckCaps refuses a cap that abl could not hold: better no run than one that seems
// capped. Under one in dollars it wants a price for every model that a gateway will let
// through. The project's prices have to be readable in any case.
func (s *Project) CheckCaps() error {
	list, err := s.Prices()
	if err != nil || !s.Conf.NeedsPrices() {
		return err
	}
	for _, role := range roles.Both() {
		p, err := s.Player(role)
		if err != nil {
			return err
		}
		if p.Agent.Provider.API == "" {
			continue
		}
		if p.Agent.Provider.Plan {
			return environment.ErrPlan("the "+role.Name+"'s agent "+p.Agent.Name, p.Agent.Provider)
		}
		for _, model := range p.Models {
			if len(money.Of(list, []string{model})) == 0 {
				return money.Unpriced(fmt.Sprintf("the %s's model %s has no price", role.Name, model), model)
			}
		}
	}
	return nil
}

// spent is what counts towards the caps of a call of phase n; key may be "".
func (s *Project) spent(n int, key string) (money.Spendings, error) {
	list, err := s.Prices()
	if err != nil {
		return money.Spendings{}, err
	}
	return money.Spent(s.Paths, list, n, key)
}

// lastCosts says what up to three phases before phase n did cost.
func (s *Project) lastCosts(f *state.File, n int) string {
	var texts []string
	for before := n - 1; before > 0 && len(texts) < 3; before-- {
		if !f.Phase(before).Ended.IsZero() {
			texts = append(texts, s.costText(before))
		}
	}
	if len(texts) == 0 {
		return "no earlier phase to compare with"
	}
	return strings.Join(texts, ", ")
}

// costText says what a phase did cost, as budgets count.
func (s *Project) costText(n int) string {
	used, err := s.spent(n, "")
	switch {
	case err != nil || used.Phase.Tokens == 0:
		return fmt.Sprintf("phase %d: tokens unknown", n)
	case len(used.Phase.Unpriced) > 0:
		return fmt.Sprintf("phase %d took %d tokens", n, used.Phase.Tokens)
	}
	return fmt.Sprintf("phase %d took %d tokens and %s USD", n, used.Phase.Tokens, used.Phase.USD.Short())
}

// BudgetText says what phase n may spend, and what it has spent.
func (s *Project) BudgetText(n int) string { return capText(s.Conf.Budget) + "; " + s.costText(n) }

// capText says what the phase may spend.
func capText(b config.Budget) string {
	var caps []string
	for _, c := range money.Caps(b, money.Spendings{}) {
		if c.Cap.Tokens > 0 {
			caps = append(caps, fmt.Sprintf("at most %d tokens a %s", c.Cap.Tokens, c.Of))
		}
		if usd := prices.Dollars(c.Cap.USD); usd > 0 {
			caps = append(caps, fmt.Sprintf("at most %s USD a %s", usd, c.Of))
		}
	}
	if len(caps) == 0 {
		return "no cap"
	}
	return strings.Join(caps, ", ")
}

// Key says where the key of who plays a role was found, never what it is; "" where none is needed.
func (s *Project) Key(p orchestrator.Player) (text string, found bool) {
	name := p.Agent.Provider.KeyVar
	if p.Agent.Provider.API == "" {
		return "", true
	}
	from := s.agents().KeyFrom(p.Agent)
	switch from {
	case "":
		return name + " is missing", false
	case environment.NoKey:
		return from, true
	}
	text = from + ", held by the gateway"
	if p.Agent.Provider.Plan {
		text += ", a subscription"
	}
	return text, true
}

// Address returns where the requests of an agent go: the variable that sets the address, the
// address in use, and who set it. The key is empty for an agent that needs no provider.
func (s *Project) Address(p orchestrator.Player) config.Line {
	vars := p.Agent.Provider
	address, from := environment.AddressOf(vars, s.Conf)
	if vars.API != "" && address == "" {
		address, from = environment.OwnAddress(vars), "default"
	}
	return config.Line{Key: vars.BaseVar, Value: address, Source: from}
}

// announce says, before the first paid call, who plays, what it may cost and
// what the last phases did cost.
func (r *Run) announce() error {
	var who []string
	for _, role := range roles.Both() {
		p, err := r.Player(role)
		if err != nil {
			return err
		}
		text := fmt.Sprintf("%s %s (%s)", role.Name, p.Agent.Name, p.Models[0])
		if key, _ := r.Key(p); key != "" {
			text += ", " + key
		}
		who = append(who, text)
	}
	p := r.file.Phase(r.phase)
	if !p.OnItsWay() {
		p.Round++ // the loop opens it
	}
	r.out.Emit(state.Event{Kind: state.PhaseStart, Phase: r.phase, Round: p.Round, Text: fmt.Sprintf("%s; %s; %s", strings.Join(who, "; "), capText(r.Conf.Budget), r.lastCosts(r.file, r.phase))})
	return nil
}
