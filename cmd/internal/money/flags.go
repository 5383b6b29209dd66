package money

import (
	"fmt"
	"strconv"
	"strings"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/internal/config"
	"abl/internal/prices"
)

// Flags let one run spend more than the settings say.
func Flags() []cli.Flag {
	return []cli.Flag{
		{Name: "budget-usd", Value: "AMOUNT", Usage: "+5 raises every dollar cap by 5 for this run, 20 caps the phase at 20"},
		{Name: "budget-tokens", Value: "N", Usage: "the same in tokens: +500000, or 2000000"},
	}
}

// Settings are what the flags set outright.
func Settings(in *cli.Input, set map[string]string) {
	for flag, key := range map[string]string{"budget-usd": "budget.phase.usd", "budget-tokens": "budget.phase.tokens"} {
		if text := in.String(flag); text != "" && !strings.HasPrefix(text, "+") {
			set[key] = text
		}
	}
}

// Raise raises the caps by what the flags add. The same command line means the
// same caps every time, so that running it again after a crash adds nothing.
func Raise(in *cli.Input, conf *config.Config) error {
	for flag, example := range map[string]string{"budget-usd": "5", "budget-tokens": "500000"} {
		text, adds := strings.CutPrefix(in.String(flag), "+")
		if !adds {
			continue
		}
		tokens, usd, err := more(flag, text)
		if err != nil {
			return exit.With(exit.Usage, fmt.Errorf("--%s: want an amount such as %s or +%s, got %q", flag, example, example, in.String(flag)), "")
		}
		inTokens, inDollars := conf.Budget.Raise(tokens, usd)
		if flag == "budget-usd" && !inDollars || flag == "budget-tokens" && !inTokens {
			return exit.With(exit.Usage, fmt.Errorf("--%s +%s: no such cap is set, so there is none to raise", flag, text), fmt.Sprintf("--%s %s caps the phase", flag, text))
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
