// Package money is what calls may cost and did cost, for every command that makes
// paid ones: prices, what counts towards a budget, the caps, and the flags that
// raise them. Tokens are counted and requests priced in internal packages, and what a
// cap stops is decided where calls are made.
package money

import (
	"errors"
	"fmt"
	"time"

	"abl/cmd/internal/exit"
	"abl/internal/config"
	"abl/internal/hostfs"
	"abl/internal/ledger"
	"abl/internal/prices"
	"abl/internal/yamlfile"
)

// maxPrices bounds a project's own list, in bytes.
const maxPrices = 1 << 20

// Prices are what models cost where root is: the settings' own before abl's.
func Prices(root string, conf *config.Loaded) (prices.List, error) {
	list, err := prices.Default()
	if err != nil {
		return list, fmt.Errorf("internal error: %w", err)
	}
	if list, err = withOwn(list, root, conf); err != nil {
		var mistake *yamlfile.Error
		do := ""
		if errors.As(err, &mistake) {
			do = mistake.Hint
		}
		return list, exit.With(exit.Usage, err, do)
	}
	return list, nil
}

func withOwn(list prices.List, root string, conf *config.Loaded) (prices.List, error) {
	if file := conf.Prices.File; file != "" {
		data, err := hostfs.Read(root, file, maxPrices)
		if errors.Is(err, hostfs.ErrAbsent) {
			return list, conf.Wrong("prices", "make it, or take the setting away", fmt.Errorf("there is no file %q", file))
		}
		if err != nil {
			return list, err
		}
		own, err := prices.ParseList(file, data)
		return list.With(own), err
	}
	for _, name := range conf.Prices.Models() {
		own, err := prices.Own(name, conf.Prices.Own[name])
		if err != nil {
			return list, conf.Wrong("prices."+name, "in US dollars for a million tokens: {input: 1.25, cached: 0.125, output: 10}", err)
		}
		list = list.With(own)
	}
	return list, nil
}

// CostOf is what a row costs: as it says, else by the prices of its day. A price
// that came later is as good as one that was there.
func CostOf(list prices.List, r ledger.Row) (prices.USD, bool) {
	if usd, known := r.Cost(); known {
		return usd, true
	}
	price, known := list.At(r.Model, r.When())
	if !known || r.Source == ledger.Nobody {
		return 0, false
	}
	return price.OfMany(r.Count)
}

// Of are the prices that models have now; one without a price is left out.
func Of(list prices.List, models []string) map[string]prices.Price {
	all := map[string]prices.Price{}
	for _, m := range models {
		if p, known := list.At(m, time.Now()); known {
			all[m] = p
		}
	}
	return all
}

// Unpriced says that a cap in dollars cannot be held, which would be none.
func Unpriced(why, model string) error {
	return exit.With(exit.Usage, fmt.Errorf("cannot hold a budget in US dollars: %s", why),
		fmt.Sprintf("add prices: {%s: {input: 1.25, output: 10}}, dollars for a million tokens, to .abl/config.yaml, or give the budget in tokens", model))
}

// Book is a ledger that calls are entered in: priced where nobody else did, and
// free of secrets. What it had to repair is told.
type Book struct {
	*ledger.Ledger
	List prices.List
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
