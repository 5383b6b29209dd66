// Package money is what calls may cost and did cost, for every command that makes
// paid ones: prices, what counts towards a budget, the caps, and the flags that
// raise them. Tokens are counted and requests priced in internal packages, and what a
// cap stops is decided where calls are made.
package money

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/internal/config"
	"abl/internal/hostfs"
	"abl/internal/ledger"
	"abl/internal/pricelist"
	"abl/internal/prices"
)

// maxPrices bounds a project's own list, in bytes.
const maxPrices = 1 << 20

// Prices are what models cost where root is: the settings' own before abl's.
func Prices(root string, conf *config.Loaded) (pricelist.List, error) {
	list, err := pricelist.Default()
	if err != nil {
		return list, fmt.Errorf("internal error: %w", err)
	}
	if list, err = withOwn(list, root, conf); err != nil {
		return list, exit.With(exit.Usage, err, "")
	}
	return list, nil
}

func withOwn(list pricelist.List, root string, conf *config.Loaded) (pricelist.List, error) {
	if file := conf.Prices.File; file != "" {
		data, err := hostfs.Read(root, file, maxPrices)
		if errors.Is(err, hostfs.ErrAbsent) {
			return list, conf.Wrong("prices", "make it, or take the setting away", fmt.Errorf("there is no file %q", file))
		}
		if err != nil {
			return list, err
		}
		own, err := pricelist.Parse(file, data)
		return list.With(own), err
	}
	for _, name := range conf.Prices.Models() {
		own, err := pricelist.Own(name, conf.Prices.Own[name])
		if err != nil {
			return list, conf.Wrong("prices."+name, "in US dollars for a million tokens: {input: 1.25, cached: 0.125, output: 10}", err)
		}
		list = list.With(own)
	}
	return list, nil
}

// CostOf is what a row costs: as it says, else by the prices of its day. A price
// that came later is as good as one that was there.
func CostOf(list pricelist.List, r ledger.Row) (prices.USD, bool) {
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
func Of(list pricelist.List, models []string) map[string]*prices.Price {
	all := map[string]*prices.Price{}
	for _, m := range models {
		if p, known := list.At(m, time.Now()); known {
			all[m] = &p
		}
	}
	return all
}

// Unpriced says that a cap in dollars cannot be held, which would be none.
func Unpriced(why, model string) error {
	return cli.WithHint(fmt.Sprintf("add prices: {%s: {input: 1.25, output: 10}}, dollars for a million tokens, to .abl/config.yaml, or give the budget in tokens", model), "cannot enforce a budget in US dollars: %s", why)
}

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

// Flags let one run spend more than the settings say.
func Flags() []cli.Flag {
	return []cli.Flag{
		{Name: "budget-usd", Value: "AMOUNT", Usage: "+5 raises every dollar cap by 5 for this run, 20 caps the phase at 20"},
		{Name: "budget-tokens", Value: "N", Usage: "the same in tokens: +500000, or 2000000"},
	}
}

// Settings reads those of root, with what flags set and with the caps that Flags raise, and
// warns of what is odd in them.
func Settings(in *cli.Input, root string, set map[string]string) (*config.Loaded, error) {
	weak := in.HideSecrets(root)
	for flag, key := range map[string]string{"budget-usd": "budget.phase.usd", "budget-tokens": "budget.phase.tokens"} {
		if text := in.String(flag); text != "" && !strings.HasPrefix(text, "+") {
			set[key] = text
		}
	}
	conf, err := config.Load(root, os.LookupEnv, set)
	if err == nil {
		err = raise(in, &conf.Config)
	}
	if err != nil {
		return nil, err
	}
	for _, text := range append(conf.Warnings, weak...) {
		in.Warn(text)
	}
	return conf, nil
}

// raise raises the caps by what the flags add. The same command line means the
// same caps every time, so that running it again after a crash adds nothing.
func raise(in *cli.Input, conf *config.Config) error {
	for flag, example := range map[string]string{"budget-usd": "5", "budget-tokens": "500000"} {
		text, adds := strings.CutPrefix(in.String(flag), "+")
		if !adds {
			continue
		}
		tokens, usd, err := more(flag, text)
		if err != nil {
			return cli.Usagef("--%s: want an amount such as %s or +%s, got %q", flag, example, example, in.String(flag))
		}
		inTokens, inDollars := conf.Budget.Raise(tokens, usd)
		if flag == "budget-usd" && !inDollars || flag == "budget-tokens" && !inTokens {
			return cli.WithHint(fmt.Sprintf("--%s %s caps the phase", flag, text), "--%s +%s: no such cap is set, so there is none to raise", flag, text)
		}
	}
	return nil
}

func more(flag, text string) (tokens int64, usd float64, err error) {
	if flag == "budget-tokens" {
		n, err := strconv.ParseUint(text, 10, 53)
		return int64(n), 0, err
	}
	amount, err := prices.Parse(text)
	return 0, float64(amount) / float64(prices.Dollar), err
}
