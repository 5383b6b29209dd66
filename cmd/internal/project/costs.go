package project

import (
	"fmt"
	"strconv"
	"strings"

	"abl/cmd/internal/money"
	"abl/internal/ledger"
	"abl/internal/state"
)

// Totals returns empty totals that use the project's prices. Without valid prices, only the recorded costs
// count.
func (s Folder) Totals() ledger.Totals {
	list, err := s.Prices()
	if err != nil {
		list = ledger.Prices{}
	}
	return ledger.Totals{Price: list.CostOf}
}

// Spent returns the spending that counts towards the caps of a call of phase n; key may be "".
func (s Folder) Spent(n int, key string) (money.Spendings, error) {
	list, err := s.Prices()
	if err != nil {
		return money.Spendings{}, err
	}
	return money.Spent(s.Paths, list, n, key)
}

// LastCosts returns the cost of up to three phases before phase n.
func (s Folder) LastCosts(f *state.File, n int) string {
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
	used, err := s.Spent(n, "")
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

// CheckLedger returns an error if tokens.csv is not a ledger. A phase repairs smaller damage when it starts.
func (s Folder) CheckLedger() error {
	return ledger.Open(s.Paths.Ledger()).Scan(func(ledger.Row) {}, func(int, string) {})
}

// Used adds up the rows of phase n.
func (s Folder) Used(n int) (ledger.Sum, error) {
	totals := s.Totals()
	rows, err := s.Rows(n)
	for _, row := range rows {
		totals.Add(row)
	}
	return totals.Account().All, err
}

// Rows returns the ledger's rows of phase n. It ignores invalid lines: abl costs reports them.
func (s Folder) Rows(n int) (rows []ledger.Row, err error) {
	err = ledger.Open(s.Paths.Ledger()).Scan(func(r ledger.Row) {
		if r.Phase == strconv.Itoa(n) {
			rows = append(rows, r)
		}
	}, func(int, string) {})
	return rows, err
}
