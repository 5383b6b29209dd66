// Package prices computes what a request costs at a price, in exact dollars. What was told
// in part has no cost, which is not the same as costing nothing. Which model has which price
// is internal/pricelist's.
package prices

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"abl/internal/tokens"
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
	text := big.NewRat(int64(u), int64(Dollar)).FloatString(decimals)
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

// Rate is what a million tokens of each kind cost.
type Rate struct {
	Input      USD `json:"input"`
	Cached     USD `json:"cached"`      // read from the provider's cache
	CacheWrite USD `json:"cache_write"` // written to it
	Output     USD `json:"output"`
	Thinking   USD `json:"thinking"`
	// Written to the cache for an hour. The rate is never less than CacheWrite.
	CacheWriteHour USD `json:"cache_write_1h"`
}

// Tier is the rate of a whole request whose prompt is longer than Above tokens.
type Tier struct {
	Above int64 `json:"above"`
	Rate
}

// Price is what one model costs on one day.
type Price struct {
	Rate
	Long []Tier `json:"long,omitempty"` // by Above, upwards
}

// OfRequest is what one request costs; false when too little was told. A part that
// providers leave out when there is none of it counts as none: that is the dearer
// reading for the cache, and the only one for the others.
func (p Price) OfRequest(t tokens.Count) (USD, bool) {
	input, output, told := split(t)
	if !told {
		return 0, false
	}
	r := p.at(input)
	cached, written := min(value(t.Cached), input), value(t.Written)
	written = min(written, input-cached)
	hour := min(value(t.WrittenHour), written)
	return sum(
		part{input - cached - written, r.Input}, part{cached, r.Cached},
		part{written - hour, r.CacheWrite}, part{hour, r.hour()},
		part{value(t.Tool), r.Input}, part{output, r.Output}, part{value(t.Thoughts), r.Thinking},
	), true
}

// hour returns the rate of tokens that are written to the cache for an hour.
func (r Rate) hour() USD { return max(r.CacheWrite, r.CacheWriteHour) }

// Most returns the largest cost of a request with up to input prompt tokens and up to output
// tokens in its answer, whatever their kinds. hour is set if the request may write to the
// cache for an hour.
func (p Price) Most(input, output int64, hour bool) (most USD) {
	rates := []Rate{p.Rate}
	for _, t := range p.Long {
		if input > t.Above {
			rates = append(rates, t.Rate)
		}
	}
	for _, r := range rates {
		in, out := max(r.Input, r.Cached, r.CacheWrite), max(r.Output, r.Thinking)
		if hour {
			in = max(in, r.hour())
		}
		most = max(most, sum(part{input, in}, part{output, out}))
	}
	return most
}

// OfMany is what several requests together cost; false when too little was told,
// or when one of them may have been long enough for another rate.
func (p Price) OfMany(t tokens.Count) (USD, bool) {
	if t.Input == nil || len(p.Long) > 0 && *t.Input > p.Long[0].Above {
		return 0, false
	}
	if t.Thoughts == nil && t.Tool == nil && t.Candidates != nil && t.Total != nil {
		// A ledger of ten columns has no thoughts. They are what its total has above the rest.
		if rest := *t.Total - *t.Input - *t.Candidates; rest > 0 {
			t.Thoughts = &rest
		}
	}
	return p.OfRequest(t)
}

// split is the prompt and the answer in tokens. An answer of thoughts alone may be
// told by the total only.
func split(t tokens.Count) (input, output int64, told bool) {
	switch {
	case t.Input == nil || *t.Input < 0:
		return 0, 0, false
	case t.Candidates != nil:
		return *t.Input, max(*t.Candidates, 0), true
	case t.Total == nil:
		return 0, 0, false
	}
	return *t.Input, max(*t.Total-*t.Input-value(t.Thoughts)-value(t.Tool), 0), true
}

// at is the rate of a request with a prompt of so many tokens.
func (p Price) at(input int64) Rate {
	r := p.Rate
	for _, t := range p.Long {
		if input > t.Above {
			r = t.Rate
		}
	}
	return r
}

type part struct {
	tokens int64
	rate   USD // of a million
}

// sum rounds up, once: what is paid is never shown as less.
func sum(parts ...part) USD {
	million, all := big.NewInt(1_000_000), big.NewInt(1_000_000-1)
	for _, p := range parts {
		cost := big.NewInt(max(p.tokens, 0))
		all.Add(all, cost.Mul(cost, big.NewInt(int64(max(p.rate, 0)))))
	}
	if all.Div(all, million); !all.IsInt64() {
		return math.MaxInt64
	}
	return USD(all.Int64())
}

func value(n *int64) int64 {
	if n == nil || *n < 0 {
		return 0
	}
	return *n
}
