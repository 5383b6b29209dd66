// Package prices computes what a request costs at one price, in exact dollars. What was
// told in part has no cost, which is not the same as costing nothing. Which model has
// which price is package pricelist's, and no file may be read here.
package prices

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// USD is an amount in billionths of a US dollar, so that a single token's price
// is a whole number and a sum does not depend on its order.
type USD int64

// Dollar is one US dollar.
const Dollar USD = 1e9

// decimals is how many digits an amount has at most after its point.
const decimals = 9

// Dollars is the amount of a decimal, for settings; it is rounded.
func Dollars(f float64) USD {
	switch n := math.Round(f * float64(Dollar)); {
	case math.IsNaN(n) || n <= 0:
		return 0
	case n >= math.MaxInt64:
		return math.MaxInt64
	default:
		return USD(n)
	}
}

// Parse reads an amount as ledgers and tables have it. A spreadsheet may have
// made "1.2E-05" of a small one.
func Parse(text string) (USD, error) {
	bad := fmt.Errorf("want an amount such as 0.25, got %s", strconv.Quote(text[:min(len(text), 40)]))
	if text == "" || strings.Trim(text, "0123456789.eE+-") != "" {
		return 0, bad
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f < 0 || f > float64(math.MaxInt64/Dollar) {
		return 0, bad
	}
	return Dollars(f), nil
}

// String is the exact decimal.
func (u USD) String() string {
	sign := ""
	if u < 0 {
		sign, u = "-", -u
	}
	text := fmt.Sprintf("%s%d.%0*d", sign, u/Dollar, decimals, u%Dollar)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// Short is the amount for a person: cents, or two digits of what is below one.
func (u USD) Short() string {
	f := float64(u) / float64(Dollar)
	if u == 0 || f >= 0.1 || f <= -0.1 {
		return strconv.FormatFloat(f, 'f', 2, 64)
	}
	places := 1 + int(math.Ceil(-math.Log10(math.Abs(f))))
	return strconv.FormatFloat(f, 'f', min(places, decimals), 64)
}

// Plus adds without running over.
func (u USD) Plus(v USD) USD {
	if v > 0 && u > math.MaxInt64-v {
		return math.MaxInt64
	}
	return u + v
}

// MarshalJSON gives the exact decimal as a number.
func (u USD) MarshalJSON() ([]byte, error) { return []byte(u.String()), nil }

// UnmarshalJSON reads such a number.
func (u *USD) UnmarshalJSON(data []byte) error { return u.UnmarshalText(data) }

// UnmarshalText reads an amount.
func (u *USD) UnmarshalText(text []byte) (err error) {
	*u, err = Parse(string(text))
	return err
}
