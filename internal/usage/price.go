package usage

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// USD is an amount in billionths of a US dollar, so that the price of a token is a whole number and
// sums are exact.
type USD int64

// Dollar is one US dollar.
const Dollar USD = 1e9

// decimals is the maximum number of decimal places of an amount.
const decimals = 9

// Dollars converts a decimal of the settings to an amount. It rounds.
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

// ParseUSD parses an amount in a ledger or a table. It accepts "1.2E-05", which spreadsheets write.
func ParseUSD(text string) (USD, error) {
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

// String returns the exact decimal.
func (u USD) String() string {
	text := big.NewRat(int64(u), int64(Dollar)).FloatString(decimals)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// Short returns the amount with two decimal places, or two significant digits for a small one.
func (u USD) Short() string {
	f := float64(u) / float64(Dollar)
	if u == 0 || f >= 0.1 || f <= -0.1 {
		return strconv.FormatFloat(f, 'f', 2, 64)
	}
	places := 1 + int(math.Ceil(-math.Log10(math.Abs(f))))
	return strconv.FormatFloat(f, 'f', min(places, decimals), 64)
}

// Plus returns the sum, at most the maximum amount.
func (u USD) Plus(v USD) USD {
	if v > 0 && u > math.MaxInt64-v {
		return math.MaxInt64
	}
	return u + v
}

// MarshalJSON returns the exact decimal as a number.
func (u USD) MarshalJSON() ([]byte, error) { return []byte(u.String()), nil }

// UnmarshalJSON parses such a number.
func (u *USD) UnmarshalJSON(data []byte) error { return u.UnmarshalText(data) }

// UnmarshalText parses an amount.
func (u *USD) UnmarshalText(text []byte) (err error) {
	*u, err = ParseUSD(string(text))
	return err
}

// Rate is the price of a million tokens by type.
type Rate struct {
	Input      USD `json:"input"`
	Cached     USD `json:"cached"`      // read from the provider's cache
	CacheWrite USD `json:"cache_write"` // written to it
	Output     USD `json:"output"`
	Thinking   USD `json:"thinking"`
	// CacheWriteHour is for cache writes for an hour. It counts as at least CacheWrite.
	CacheWriteHour USD `json:"cache_write_1h"`
}

// Tier is the rate of a request whose prompt has more than Above tokens.
type Tier struct {
	Above int64 `json:"above"`
	Rate
}

// Price is the price of one model on one day.
type Price struct {
	Rate
	Long []Tier `json:"long,omitempty"` // by Above, ascending
}

// OfRequest returns the cost of one request, and false if too few counts are known. Missing counts
// that providers omit if they are 0 count as 0. For the cache that is the more expensive
// interpretation.
func (p Price) OfRequest(t Count) (USD, bool) {
	input, output, known := split(t)
	if !known {
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

// hour returns the rate of cache writes for an hour.
func (r Rate) hour() USD { return max(r.CacheWrite, r.CacheWriteHour) }

// Most returns the maximum cost of a request with up to input prompt tokens and up to output
// response tokens of any type. hour is set if the request may write to the cache for an hour.
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

// OfMany returns the cost of several requests together. It returns false if too few counts are
// known, or if one request may have had another rate because of its length.
func (p Price) OfMany(t Count) (USD, bool) {
	if t.Input == nil || len(p.Long) > 0 && *t.Input > p.Long[0].Above {
		return 0, false
	}
	if t.Thoughts == nil && t.Tool == nil && t.Candidates != nil && t.Total != nil {
		// A ledger with ten columns has no thoughts: derive them from the total.
		if rest := *t.Total - *t.Input - *t.Candidates; rest > 0 {
			t.Thoughts = &rest
		}
	}
	return p.OfRequest(t)
}

// split returns the prompt and response tokens. It derives a missing response from the total.
func split(t Count) (input, output int64, known bool) {
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

// at returns the rate for a prompt of input tokens.
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
	rate   USD // per million
}

// sum returns the sum of parts, rounded up once, so that it never shows less than the real cost.
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
