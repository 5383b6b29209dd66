// Package money has prices, budgets and the flags that raise them, for every command that makes paid
// calls. Internal packages count tokens and price requests.
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
	"abl/internal/usage"
	"abl/roles/agent"
	"abl/roles/environment"
)

// maxPrices is the largest price list of a project, in bytes.
const maxPrices = 1 << 20

// Prices returns the prices of models in the project at root: those of its settings before abl's list.
func Prices(root string, conf *config.Loaded) (ledger.Prices, error) {
	list, err := ledger.DefaultPrices()
	if err != nil {
		return list, fmt.Errorf("internal error: %w", err)
	}
	if list, err = withOwn(list, root, conf); err != nil {
		return list, exit.With(exit.Usage, err, "")
	}
	return list, nil
}

// withOwn puts the prices of the settings before the prices in list.
func withOwn(list ledger.Prices, root string, conf *config.Loaded) (ledger.Prices, error) {
	if file := conf.Prices.File; file != "" {
		data, err := hostfs.Read(root, file, maxPrices)
		if errors.Is(err, hostfs.ErrAbsent) {
			return list, conf.Wrong("prices", "create the file, or remove the setting",
				fmt.Errorf("file %q does not exist", file))
		}
		if err != nil {
			return list, err
		}
		own, err := ledger.ParsePrices(file, data)
		return list.With(own), err
	}
	for _, name := range conf.Prices.Models() {
		own, err := ledger.OwnPrice(name, conf.Prices.Own[name])
		if err != nil {
			return list, conf.Wrong("prices."+name,
				"give US dollars per million tokens: {input: 1.25, cached: 0.125, output: 10}", err)
		}
		list = list.With(own)
	}
	return list, nil
}

// Of returns the current prices of models. It leaves out models without a price.
func Of(list ledger.Prices, models []string) map[string]*usage.Price {
	all := map[string]*usage.Price{}
	for _, m := range models {
		if p, known := list.At(m, time.Now()); known {
			all[m] = &p
		}
	}
	return all
}

// CheckCaps returns an error if a cap in dollars cannot be enforced on an agent, because it uses a
// subscription or one of its models has no price. of names the role in errors.
func CheckCaps(conf *config.Loaded, list ledger.Prices, of string, a agent.Agent, models []string) error {
	if a.Provider.API == "" || !conf.NeedsPrices() {
		return nil
	}
	if a.Provider.Plan {
		return environment.PlanError(of+" agent "+a.Name, a.Provider)
	}
	for _, model := range models {
		if len(Of(list, []string{model})) == 0 {
			return Unpriced(of+" model "+model+" has no price", model)
		}
	}
	return nil
}

// Unpriced returns the error for a cap in dollars and a model without a price.
func Unpriced(why, model string) error {
	hint := fmt.Sprintf("add prices: {%s: {input: 1.25, output: 10}}, in dollars per million tokens, "+
		"to .abl/config.yaml, or give the budget in tokens", model)
	return cli.WithHint(hint, "cannot enforce a budget in US dollars: %s", why)
}

// Book is a ledger that prices rows without a cost and redacts secrets.
type Book struct {
	*ledger.Ledger
	List ledger.Prices
	Hide func(string) string // redacts text of agents
	Note func(string)        // is called for each repair of the file
}

// Ready checks that the ledger is writable, and creates or repairs it.
func (b Book) Ready() error {
	notices, err := b.EnsureHeader()
	b.note(notices)
	return err
}

// Append appends the rows of one call.
func (b Book) Append(rows []ledger.Row) error {
	safe := make([]ledger.Row, len(rows))
	for i, r := range rows {
		safe[i] = r.Map(b.Hide)
		if r.CostUSD == ledger.Unknown { // an agent reports no cost
			if usd, known := b.List.CostOf(r); known {
				safe[i].CostUSD = usd.String()
			}
		}
	}
	notices, err := b.Ledger.Append(safe)
	b.note(notices)
	return err
}

func (b Book) note(notices []string) {
	for _, n := range notices {
		b.Note("tokens.csv: " + n)
	}
}

// Flags returns the flags that raise or set caps for one run.
func Flags() []cli.Flag {
	return []cli.Flag{
		{Name: "budget-usd", Value: "AMOUNT",
			Usage: "for this run: +5 raises every limit in dollars by 5; 20 sets the limit of the phase"},
		{Name: "budget-tokens", Value: "N", Usage: "the same in tokens: +500000 or 2000000"},
	}
}

// Settings reads the settings of root. Flags override them by set and by Flags. It prints their warnings.
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

// raise raises the caps of the settings by the flags. The same command line gives the same caps each time:
// running it again after a crash adds nothing.
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
			return cli.WithHint(fmt.Sprintf("--%s %s sets the limit of the phase", flag, text),
				"--%s +%s: there is no such limit to raise", flag, text)
		}
	}
	return nil
}

// more parses the amount that a --budget flag adds to a limit.
func more(flag, text string) (tokens int64, usd float64, err error) {
	if flag == "budget-tokens" {
		n, err := strconv.ParseUint(text, 10, 53)
		return int64(n), 0, err
	}
	amount, err := usage.ParseUSD(text)
	return 0, float64(amount) / float64(usage.Dollar), err
}
