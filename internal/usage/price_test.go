package usage

import (
	"encoding/json"
	"math"
	"testing"
)

func TestUnknownCountsHaveNoCost(t *testing.T) {
	p := Price{Rate: Rate{Input: Dollar, Output: Dollar, Thinking: Dollar}, Long: []Tier{{Above: 100, Rate: Rate{Input: 2 * Dollar, Output: 2 * Dollar, Thinking: 2 * Dollar}}}}
	for name, c := range map[string]struct {
		use        Count
		want, many string
	}{
		"nothing":                   {Count{}, "-", "-"},
		"a-total-alone":             {Count{Total: n(5)}, "-", "-"},
		"an-input-alone":            {Count{Input: n(5)}, "-", "-"},
		"thoughts-only":             {Count{Input: n(5), Thoughts: n(5), Total: n(10)}, "0.00001", "0.00001"},
		"an-odd-total":              {Count{Input: n(5), Total: n(1)}, "0.000005", "0.000005"},
		"none-used":                 {Count{Input: n(0), Candidates: n(0)}, "0", "0"},
		"long":                      {Count{Input: n(101), Candidates: n(0)}, "0.000202", "-"},
		"a-nonsense-input":          {Count{Input: n(-1), Candidates: n(1)}, "-", "-"},
		"more-than-fits":            {Count{Input: n(math.MaxInt64), Candidates: n(math.MaxInt64), Thoughts: n(math.MaxInt64)}, USD(math.MaxInt64).String(), "-"},
		"more-cached-than-there-is": {Count{Input: n(10), Cached: n(99), Written: n(99), Candidates: n(0)}, "0", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			show := func(u USD, ok bool) string {
				if !ok {
					return "-"
				}
				return u.String()
			}
			if got, many := show(p.OfRequest(c.use)), show(p.OfMany(c.use)); got != c.want || many != c.many {
				t.Errorf("got %s and %s, want %s and %s", got, many, c.want, c.many)
			}
		})
	}
}

func TestAmounts(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "0.25": "0.25", "1.2E-05": "0.000012", "5": "5", "0.000000001": "0.000000001", "12.5000": "12.5",
		"": "-", "unknown": "-", "-1": "-", "1e300": "-", "NaN": "-", "Inf": "-", "1,5": "-", "0x10": "-", "e": "-", "1 ": "-",
	} {
		got := "-"
		if u, err := ParseUSD(text); err == nil {
			got = u.String()
		}
		if got != want {
			t.Errorf("ParseUSD(%q): got %s, want %s", text, got, want)
		}
	}
	for _, c := range []struct {
		amount USD
		want   string
	}{{0, "0.00"}, {5 * Dollar, "5.00"}, {Dollar / 10, "0.10"}, {14_200_000, "0.014"}, {1234, "0.0000012"}, {1, "0.000000001"}, {-Dollar, "-1.00"}} {
		if got := c.amount.Short(); got != c.want {
			t.Errorf("short form of %d: got %s, want %s", c.amount, got, c.want)
		}
	}
	sum, none, most := USD(math.MaxInt64).Plus(1), Dollars(math.NaN()), Dollars(1e300)
	if sum != math.MaxInt64 || none != 0 || most != math.MaxInt64 {
		t.Errorf("amounts out of range: got %d, %d and %d, want %d, 0 and the first again",
			sum, none, most, int64(math.MaxInt64))
	}
	data, err := json.Marshal(map[string]USD{"usd": 1_500_000_000})
	if err != nil || string(data) != `{"usd":1.5}` {
		t.Errorf(`encoded amount: got %s, error %v, want {"usd":1.5}`, data, err)
	}
	var back struct{ USD *USD }
	if err := json.Unmarshal(data, &back); err != nil || *back.USD != 1_500_000_000 {
		t.Errorf("decoded amount: got %v, error %v, want 1.5", back.USD, err)
	}
}

func FuzzParseUSD(f *testing.F) {
	for _, s := range []string{"0.25", "1E-9", "9223372036.854775807", "-0", "1e9"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := ParseUSD(text)
		if err != nil {
			return
		}
		if u < 0 {
			t.Fatalf("ParseUSD(%q): got %d, want 0 or more", text, u)
		}
		if again, err := ParseUSD(u.String()); err != nil || math.Abs(float64(again-u)) > math.Abs(float64(u))*1e-15+1 {
			t.Errorf("%q written and read again: got %d, error %v, want %d", text, again, err, u)
		}
	})
}
