package prices

import (
	"math"
	"math/bits"

	"abl/internal/tokens"
)

// Rate is what a million tokens of each kind cost.
type Rate struct {
	Input      USD `json:"input"`
	Cached     USD `json:"cached"`      // read from the provider's cache
	CacheWrite USD `json:"cache_write"` // written to it
	Output     USD `json:"output"`
	Thinking   USD `json:"thinking"`
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
	return sum(
		part{input - cached - written, r.Input}, part{cached, r.Cached}, part{written, r.CacheWrite},
		part{value(t.Tool), r.Input}, part{output, r.Output}, part{value(t.Thoughts), r.Thinking},
	), true
}

// OfMany is what several requests together cost; false when too little was told,
// or when one of them may have been long enough for another rate.
func (p Price) OfMany(t tokens.Count) (USD, bool) {
	if t.Input == nil || len(p.Long) > 0 && *t.Input > p.Long[0].Above {
		return 0, false
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
	const million = 1_000_000
	var hi, lo, carry uint64
	for _, p := range parts {
		h, l := bits.Mul64(uint64(max(p.tokens, 0)), uint64(max(p.rate, 0)))
		lo, carry = bits.Add64(lo, l, 0)
		hi, _ = bits.Add64(hi, h, carry)
	}
	lo, carry = bits.Add64(lo, million-1, 0)
	hi += carry
	if hi >= million {
		return math.MaxInt64
	}
	n, _ := bits.Div64(hi, lo, million)
	if n > math.MaxInt64 {
		return math.MaxInt64
	}
	return USD(n)
}

func value(n *int64) int64 {
	if n == nil || *n < 0 {
		return 0
	}
	return *n
}
