package money

import (
	"abl/internal/ledger"
	"abl/internal/pricelist"
)

// Book is a ledger that calls are entered in: priced where nobody else did, and
// free of secrets. What it had to repair is told.
type Book struct {
	*ledger.Ledger
	List pricelist.List
	Hide func(string) string // takes secrets out of what agents said
	Tell func(string)
}

// Ready makes sure that it can be written to.
func (b Book) Ready() error {
	notices, err := b.EnsureHeader()
	b.tell(notices)
	return err
}

// Append enters the rows of one call.
func (b Book) Append(rows []ledger.Row) error {
	safe := make([]ledger.Row, len(rows))
	for i, r := range rows {
		if safe[i] = r.Map(b.Hide); r.CostUSD == ledger.Unknown { // counted by the agent, which knows no prices
			if usd, known := CostOf(b.List, r); known {
				safe[i].CostUSD = usd.String()
			}
		}
	}
	notices, err := b.Ledger.Append(safe)
	b.tell(notices)
	return err
}

func (b Book) tell(notices []string) {
	for _, n := range notices {
		b.Tell("tokens.csv: " + n)
	}
}
