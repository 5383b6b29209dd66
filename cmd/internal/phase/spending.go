package phase

import (
	"fmt"
	"strings"

	"abl/cmd/internal/money"
	"abl/internal/config"
	"abl/internal/ledger"
	"abl/internal/state"
	"abl/orchestrator"
	"abl/roles"
	"abl/roles/environment"
)

// openLedger opens tokens.csv and checks that it is writable.
func (r *Run) openLedger() error {
	list, err := r.Prices()
	if err != nil {
		return err
	}
	tell := func(text string) { r.emit(state.Event{Text: text}) }
	r.book = money.Book{Ledger: ledger.Open(r.Paths.Ledger()), List: list, Hide: r.In.Safe.Redact, Tell: tell}
	return r.book.Ready()
}

// Totals returns empty totals that use the project's prices. Without valid prices, only the recorded costs
// count.
func (s Folder) Totals() ledger.Totals {
	list, err := s.Prices()
	if err != nil {
		list = ledger.Prices{}
	}
	return ledger.Totals{Price: list.CostOf}
}

// CheckCaps returns an error if abl cannot enforce a cap on these players: a cap in dollars needs a price
// for every model that a gateway allows. It also fails if the project's prices cannot be read.
func (s Folder) CheckCaps(players map[string]orchestrator.Player) error {
	list, err := s.Prices()
	for _, role := range roles.Both() {
		if p := players[role.Name]; err == nil {
			err = money.CheckCaps(s.Conf, list, "the "+role.Name+"'s", p.Agent, p.Models)
		}
	}
	return err
}

// spent returns the spending that counts towards the caps of a call of phase n; key may be "".
func (s Folder) spent(n int, key string) (money.Spendings, error) {
	list, err := s.Prices()
	if err != nil {
		return money.Spendings{}, err
	}
	return money.Spent(s.Paths, list, n, key)
}

// lastCosts returns the cost of up to three phases before phase n.
func (s Folder) lastCosts(f *state.File, n int) string {
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

// costText returns the cost of a phase, as budgets count it.
func (s Folder) costText(n int) string {
	used, err := s.spent(n, "")
	switch {
	case err != nil || used.Phase.Tokens == 0:
		return fmt.Sprintf("phase %d: tokens unknown", n)
	case len(used.Phase.Unpriced) > 0:
		return fmt.Sprintf("phase %d took %d tokens", n, used.Phase.Tokens)
	}
	return fmt.Sprintf("phase %d took %d tokens and %s USD", n, used.Phase.Tokens, used.Phase.USD.Short())
}

// BudgetText returns the caps of phase n, and what it has spent.
func (s Folder) BudgetText(n int) string { return money.CapsText(s.Conf.Budget) + "; " + s.costText(n) }

// Key returns where the key of a role's agent was found, without the key; "" if it needs none.
func (s Folder) Key(p orchestrator.Player) (text string, found bool) {
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
	text = from + ", given only to the gateway"
	if p.Agent.Provider.Plan {
		text += ", a subscription"
	}
	return text, true
}

// Address returns where the requests of an agent go: the variable that sets the address, the
// address in use, and who set it. The key is empty for an agent that needs no provider.
func (s Folder) Address(p orchestrator.Player) config.Line {
	vars := p.Agent.Provider
	address, from := environment.AddressOf(vars, s.Conf)
	if vars.API != "" && address == "" {
		address, from = environment.OwnAddress(vars), "default"
	}
	return config.Line{Key: vars.BaseVar, Value: address, Source: from}
}

// announce emits, before the first paid call, the agents, the caps and the cost of earlier phases.
func (r *Run) announce() {
	var who []string
	for _, role := range roles.Both() {
		p := r.players[role.Name]
		text := fmt.Sprintf("%s %s (%s)", role.Name, p.Agent.Name, p.Models[0])
		if key, _ := r.Key(p); key != "" {
			text += ", " + key
		}
		who = append(who, text)
	}
	p := r.file.Phase(r.phase)
	if !p.OnItsWay() {
		p.Round++ // the loop will open this round
	}
	text := fmt.Sprintf("%s; %s; %s", strings.Join(who, "; "), money.CapsText(r.Conf.Budget), r.lastCosts(r.file, r.phase))
	r.out.Emit(state.Event{Kind: state.PhaseStart, Phase: r.phase, Round: p.Round, Text: text})
}
