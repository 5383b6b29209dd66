package gateway

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"abl/internal/usage"
)

func usd(text string) *usage.USD {
	u, err := usage.ParseUSD(text)
	if err != nil {
		panic(err)
	}
	return &u
}

// tenDollars is a price of ten dollars per million tokens, read or written.
func tenDollars() *usage.Price {
	ten := 10 * usage.Dollar
	return &usage.Price{
		Rate: usage.Rate{Input: ten, Cached: usage.Dollar, CacheWrite: 20 * usage.Dollar, Output: ten, Thinking: ten},
		Long: []usage.Tier{{Above: 1000, Rate: usage.Rate{Input: 2 * ten, Output: 2 * ten, Thinking: 2 * ten}}},
	}
}

// priced returns a setup with this price and bounds.
func priced(upstream string, bounds ...Bound) Setup {
	s := setup(upstream)
	for i := range s.Providers {
		s.Providers[i].Prices = map[string]*usage.Price{"m1": tenDollars(), "m2": tenDollars()}
	}
	s.Call.Budget.Bounds = bounds
	return s
}

// gemini returns a response that reports these tokens.
func gemini(prompt, answer int) string {
	return fmt.Sprintf(`data: {"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":%d,"candidatesTokenCount":%d,"totalTokenCount":%d}}`+"\n\n", prompt, answer, prompt+answer)
}

func TestBudgetsInMoneyEndTheCall(t *testing.T) {
	u := serve(t, say(http.StatusOK, "text/event-stream", gemini(500, 500))) // 0.01 USD
	r := start(t, priced(u.URL,
		Bound{Of: "phase", USD: usd("1.02"), UsedUSD: *usd("1")}, Bound{Of: "project", Tokens: count(1_000_000), UsedTokens: 5}))
	for i, want := range []int{200, 200, 403} {
		if got := r.post(gen, shortBody); got.status != want {
			t.Fatalf("request %d: got %+v, want %d", i, got, want)
		}
		e := r.next(Requested)
		switch {
		case want == 200 && (*e.Cost != *usd("0.01") || *e.Req.ChargedUSD != *usd("0.01") || *e.Req.SpentUSD != *usd(fmt.Sprint(0.01 * float64(i+1)))):
			t.Errorf("request %d: got %+v, %+v, want a cost and charge of 0.01 USD, %v USD spent",
				i, e, e.Req, 0.01*float64(i+1))
		case want == 403 && e.Reason != "the budget of this phase is reached: 1.02 of 1.02 USD are spent":
			t.Errorf("got reason %q, want the budget of 1.02 USD", e.Reason)
		}
	}
	r.send(`{"budget":{"bounds":[{"of":"phase","usd":6.02,"used_usd":1}]}}`)
	r.next(Obeyed)
	if got := r.post(gen, shortBody); got.status != http.StatusOK {
		t.Errorf("request under a raised budget: got %+v, want status 200", got)
	}
	if e := r.next(Requested); *e.Req.SpentUSD != *usd("0.03") {
		t.Errorf("spent amount: got %s USD in %+v, want 0.03", e.Req.SpentUSD, e.Req)
	}
	if n := len(u.requests()); n != 3 {
		t.Errorf("requests to the provider: got %d, want 3", n)
	}
}

func TestMoneyNeedsAPrice(t *testing.T) {
	u := serve(t, say(http.StatusOK, "text/event-stream", gemini(1, 1)))
	s := setup(u.URL)
	s.Call.Budget.Bounds = []Bound{{Of: "phase", USD: usd("1")}}
	r := start(t, s)
	if got := r.post(gen, shortBody); got.status != http.StatusForbidden || !strings.Contains(got.body, "has no price") {
		t.Errorf("got %+v, want 403 for a model without a price", got)
	}
	if e := r.next(Requested); !e.Req.Over {
		t.Errorf("got %+v, want over the budget", e.Req)
	}
	if n := len(u.requests()); n != 0 {
		t.Errorf("requests to the provider: got %d, want 0", n)
	}
}

func TestCharges(t *testing.T) {
	ten := tenDollars()
	known, unknown := tariff{Price: ten}, tariff{}
	guess := known.most(1000, 1000)
	if guess != (amount{2000, *usd("0.03")}) || unknown.most(1000, 1000) != (amount{tokens: 2000}) {
		t.Errorf("most(1000, 1000): got %+v, without a price %+v, want 2000 tokens for 0.03 USD and 2000 tokens",
			guess, unknown.most(1000, 1000))
	}
	for name, c := range map[string]struct {
		use  usage.Count
		part bool
		by   tariff
		want amount
		cost string
	}{
		"cut-in-the-middle": {usage.Count{Input: count(10), Candidates: count(1)}, true, known, guess, "0.00011"},
		"told":              {usage.Count{Input: count(100), Candidates: count(0), Total: count(100)}, false, known, amount{100, *usd("0.001")}, "0.001"},
		"cached":            {usage.Count{Input: count(100), Cached: count(100), Candidates: count(0)}, false, known, amount{100, *usd("0.0001")}, "0.0001"},
		"written":           {usage.Count{Input: count(100), Written: count(100), Candidates: count(0)}, false, known, amount{100, *usd("0.002")}, "0.002"},
		"long":              {usage.Count{Input: count(2000), Candidates: count(0)}, false, known, amount{2000, *usd("0.04")}, "0.04"},
		"nothing-told":      {usage.Count{}, false, known, guess, "-"},
		"a-small-part":      {usage.Count{Input: count(10)}, false, known, guess, "-"},
		"a-large-part":      {usage.Count{Input: count(10_000)}, false, known, amount{10_000, *usd("0.2")}, "-"},
		"without-a-price":   {usage.Count{Input: count(100), Candidates: count(0)}, false, unknown, amount{100, guess.usd}, "-"},
		"a-total-no-more":   {usage.Count{Total: count(5)}, false, known, amount{5, guess.usd}, "-"},
	} {
		t.Run(name, func(t *testing.T) {
			cost := "-"
			if u := c.by.cost(c.use); u != nil {
				cost = u.String()
			}
			if got := c.by.charge(c.use, c.part, guess); got != c.want || cost != c.cost {
				t.Errorf("got %+v, %s, want %+v, %s", got, cost, c.want, c.cost)
			}
		})
	}
}

// If the client disconnects before the usage, or does not request it, the response counts by its
// length.
func TestNoLongAnswerForThePriceOfAShortOne(t *testing.T) {
	const events = 5000
	word := func(text string) string { return "data: " + text + "\n\n" }
	for name, c := range map[string]struct{ path, first, event string }{
		"left before Anthropic told": {"/anthropic/v1/messages", word(`{"type":"message_start","message":{"usage":{"input_tokens":3,"output_tokens":1}}}`),
			"event: content_block_delta\n" + word(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"some more words"}}`)},
		"never asked OpenAI": {"/openai-chat/v1/chat/completions", "", word(`{"choices":[{"index":0,"delta":{"content":"word"}}]}`)},
	} {
		t.Run(name, func(t *testing.T) {
			u := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				io.WriteString(w, c.first+strings.Repeat(c.event, events))
				flush(w)
				if c.first != "" {
					panic(http.ErrAbortHandler)
				}
			})
			r := start(t, setup(u.URL))
			r.post(c.path, `{"model":"m1","max_tokens":1}`)
			if e := r.next(Requested); e.Req.Charged < events || e.Req.Charged > 10*events || e.Sum.Unknown != 1 || e.Cost != nil {
				t.Errorf("charge: got %d tokens in %s, want %d to %d, 1 unknown and no cost",
					e.Req.Charged, encode(t, e), events, 10*events)
			}
		})
	}
}

// If a server in front of the model times out, no usage is reported: the model may have finished, and
// the provider may charge.
func TestATimeoutInFrontOfTheModelHasAnUnknownCost(t *testing.T) {
	late := http.Header{"Retry-After": {"600"}} // so long that further requests of the call are useless
	for _, c := range []struct {
		name    string
		status  int
		header  http.Header
		unknown int64
	}{
		{"request timeout", 408, nil, 1},
		{"canceled request", 499, nil, 1},
		{"gateway timeout", 504, nil, 1},
		{"Cloudflare's timeout", 524, nil, 1},
		{"gateway timeout with a long wait", 504, late, 1},
		{"internal error", 500, nil, 0},
		{"bad gateway", 502, nil, 0},
		{"overload", 503, nil, 0},
		{"overload with a long wait", 503, late, 0},
		{"Cloudflare reached no server", 522, nil, 0},
		{"rate limit", 429, nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			u := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				maps.Copy(w.Header(), c.header)
				w.WriteHeader(c.status)
				io.WriteString(w, "<html>error</html>")
			})
			r := start(t, priced(u.URL))
			r.post(gen, shortBody)
			r.stop()
			e, sum := r.next(Requested), r.next(Ended).Sum
			got := fmt.Sprintf("%d of %d unknown, %d tokens charged, cost %v", sum.Unknown, sum.Requests, sum.Spent, e.Cost)
			if want := fmt.Sprintf("%d of %[1]d unknown, %d tokens charged, cost <nil>", c.unknown, c.unknown*most); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}
