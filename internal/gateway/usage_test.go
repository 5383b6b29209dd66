package gateway

import (
	"fmt"
	"net/http"
	"testing"

	"abl/internal/usage"
)

// sonnet is the price of a model in US dollars per million tokens.
func sonnet() *usage.Price {
	return &usage.Price{Rate: usage.Rate{
		Input:          *usd("3"),
		Cached:         *usd("0.3"),
		CacheWrite:     *usd("3.75"),
		CacheWriteHour: *usd("6"),
		Output:         *usd("15"),
		Thinking:       *usd("15"),
	}}
}

// sse is a server-sent event with this data.
func sse(data string) string { return "data: " + data + "\n\n" }

const (
	anthropicPath = "/anthropic/v1/messages"
	responsesPath = "/openai-responses/v1/responses"
	chatPath      = "/openai-chat/v1/chat/completions"

	chatEnd      = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	responsesEnd = `{"type":"response.completed","response":{"status":"completed","usage":%s}}`
	geminiEnd    = `{"candidates":[{"finishReason":"STOP"}],"usageMetadata":%s}`
	messageEnd   = `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":%s}`
	messageBegin = `{"type":"message_start","message":{"usage":%s}}`
)

// Servers report usage in ways that the API's documents do not describe. Tokens and dollars
// are computed by hand.
func TestOddUsage(t *testing.T) {
	for _, c := range []struct {
		name, path, answer string
		want               string // input, cached, candidates, thoughts, total
		cost               string
	}{
		{
			"Anthropic: zeros in the last event", anthropicPath,
			sse(fmt.Sprintf(messageBegin, `{"input_tokens":105000,"output_tokens":1}`)) +
				sse(fmt.Sprintf(messageEnd, `{"input_tokens":0,"cache_read_input_tokens":0,"cache_creation_input_tokens":0,"output_tokens":10}`)),
			"105000 0 10 - 105010", "0.31515", // 105000 × 3 + 10 × 15
		},
		{
			"Anthropic: zeros for the cache in the last event", anthropicPath,
			sse(fmt.Sprintf(messageBegin, `{"input_tokens":10,"cache_read_input_tokens":1000,"cache_creation_input_tokens":500,"output_tokens":1}`)) +
				sse(fmt.Sprintf(messageEnd, `{"input_tokens":0,"cache_read_input_tokens":0,"cache_creation_input_tokens":0,"output_tokens":10}`)),
			"1510 1000 10 - 1520", "0.002355", // 10 × 3 + 1000 × 0.3 + 500 × 3.75 + 10 × 15
		},
		{
			"Anthropic: the input in the last event alone", anthropicPath,
			sse(fmt.Sprintf(messageBegin, `{"input_tokens":0,"output_tokens":0}`)) +
				sse(fmt.Sprintf(messageEnd, `{"input_tokens":200,"output_tokens":20}`)),
			"200 - 20 - 220", "0.0009", // 200 × 3 + 20 × 15
		},
		{
			"Anthropic: the output in the first event alone", anthropicPath,
			sse(fmt.Sprintf(messageBegin, `{"input_tokens":100,"output_tokens":40}`)) +
				sse(fmt.Sprintf(messageEnd, `{"output_tokens":0}`)),
			"100 - 40 - 140", "0.0009", // 100 × 3 + 40 × 15
		},
		{
			"Anthropic: a second last event with zeros", anthropicPath,
			sse(fmt.Sprintf(messageBegin, `{"input_tokens":100,"output_tokens":1}`)) +
				sse(fmt.Sprintf(messageEnd, `{"output_tokens":40}`)) + sse(fmt.Sprintf(messageEnd, `{"input_tokens":0,"output_tokens":0}`)),
			"100 - 40 - 140", "0.0009", // 100 × 3 + 40 × 15
		},
		{
			"Anthropic: the cache for an hour", anthropicPath,
			sse(fmt.Sprintf(messageBegin, `{"input_tokens":10,"cache_creation_input_tokens":3000,"output_tokens":1,`+
				`"cache_creation":{"ephemeral_5m_input_tokens":1000,"ephemeral_1h_input_tokens":2000}}`)) +
				sse(fmt.Sprintf(messageEnd, `{"output_tokens":10}`)),
			"3010 - 10 - 3020", "0.01593", // 10 × 3 + 1000 × 3.75 + 2000 × 6 + 10 × 15
		},
		{
			"Anthropic: the cache for an hour in a document", anthropicPath,
			`{"stop_reason":"end_turn","usage":{"input_tokens":10,"cache_creation_input_tokens":2000,"output_tokens":10,` +
				`"cache_creation":{"ephemeral_1h_input_tokens":2000}}}`,
			"2010 - 10 - 2020", "0.01218", // 10 × 3 + 2000 × 6 + 10 × 15
		},
		{
			"Anthropic: the cache for an hour in the details alone", anthropicPath,
			`{"stop_reason":"end_turn","usage":{"input_tokens":10,"output_tokens":10,"cache_creation":{"ephemeral_1h_input_tokens":2000}}}`,
			"2010 - 10 - 2020", "0.01218", // 10 × 3 + 2000 × 6 + 10 × 15
		},
		{
			"Anthropic: no input at all", anthropicPath,
			sse(fmt.Sprintf(messageBegin, `{"input_tokens":0,"output_tokens":0}`)) + sse(fmt.Sprintf(messageEnd, `{"output_tokens":20}`)),
			"- - 20 - -", "-",
		},
		{
			"Chat: thoughts in addition to the answer", chatPath,
			sse(chatEnd) + sse(`{"choices":[],"usage":{"prompt_tokens":32,"completion_tokens":9,"total_tokens":135,"completion_tokens_details":{"reasoning_tokens":94}}}`),
			"32 - 9 94 135", "0.001641", // 32 × 3 + 103 × 15
		},
		{
			"Chat: fewer thoughts in addition than the answer has", chatPath,
			sse(chatEnd) + sse(`{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":50,"total_tokens":180,"completion_tokens_details":{"reasoning_tokens":30}}}`),
			"100 - 50 30 180", "0.0015", // 100 × 3 + 80 × 15
		},
		{
			"Chat: thoughts that only the total contains", chatPath,
			sse(chatEnd) + sse(`{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":50,"total_tokens":180}}`),
			"100 - 80 - 180", "0.0015", // 100 × 3 + 80 × 15
		},
		{
			"Chat: thoughts within the answer", chatPath,
			sse(chatEnd) + sse(`{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":50,"total_tokens":150,"completion_tokens_details":{"reasoning_tokens":30}}}`),
			"100 - 20 30 150", "0.00105", // 100 × 3 + 50 × 15
		},
		{
			"Chat: a total that is too small", chatPath,
			sse(chatEnd) + sse(`{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":50,"total_tokens":0}}`),
			"100 - 50 - 150", "0.00105", // 100 × 3 + 50 × 15
		},
		{
			"Chat: usage in each event and zeros in the last", chatPath,
			sse(`{"choices":[{"index":0,"delta":{"content":"x"}}],"usage":{"prompt_tokens":100,"completion_tokens":1,"total_tokens":101}}`) +
				sse(`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":50,"total_tokens":150}}`) +
				sse(`{"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}`),
			"100 - 50 - 150", "0.00105", // 100 × 3 + 50 × 15
		},
		{
			"Chat: the last event lacks the answer's count", chatPath,
			sse(`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":50,"total_tokens":150}}`) +
				sse(`{"choices":[],"usage":{"prompt_tokens":100,"total_tokens":100}}`),
			"100 - 50 - 150", "0.00105", // 100 × 3 + 50 × 15
		},
		{
			"Chat: written to the cache", chatPath,
			sse(chatEnd) + sse(`{"choices":[],"usage":{"prompt_tokens":1000,"completion_tokens":10,"total_tokens":1010,"prompt_tokens_details":{"cached_tokens":400,"cache_write_tokens":500}}}`),
			"1000 400 10 - 1010", "0.002445", // 100 × 3 + 400 × 0.3 + 500 × 3.75 + 10 × 15
		},
		{
			"Responses: thoughts in addition to the answer", responsesPath,
			sse(fmt.Sprintf(responsesEnd, `{"input_tokens":100,"output_tokens":50,"total_tokens":180,"output_tokens_details":{"reasoning_tokens":30}}`)),
			"100 - 50 30 180", "0.0015", // 100 × 3 + 80 × 15
		},
		{
			"Responses: zeros in the first event and after the last", responsesPath,
			sse(`{"type":"response.created","response":{"usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0}}}`) +
				sse(fmt.Sprintf(responsesEnd, `{"input_tokens":100,"output_tokens":50,"total_tokens":150}`)) +
				sse(fmt.Sprintf(responsesEnd, `{"input_tokens":0,"output_tokens":0,"total_tokens":0}`)),
			"100 - 50 - 150", "0.00105", // 100 × 3 + 50 × 15
		},
		{
			"Responses: written to the cache", responsesPath,
			sse(fmt.Sprintf(responsesEnd, `{"input_tokens":1000,"output_tokens":10,"total_tokens":1010,"input_tokens_details":{"cached_tokens":0,"cache_write_tokens":900}}`)),
			"1000 0 10 - 1010", "0.003825", // 100 × 3 + 900 × 3.75 + 10 × 15
		},
		{
			"Gemini: zeros in the last event", gen,
			sse(`{"candidates":[],"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":50,"thoughtsTokenCount":30,"totalTokenCount":180}}`) +
				sse(fmt.Sprintf(geminiEnd, `{"promptTokenCount":100,"candidatesTokenCount":0,"totalTokenCount":100}`)),
			"100 - 50 30 180", "0.0015", // 100 × 3 + 80 × 15
		},
		{
			"Gemini: the last event lacks the thoughts", gen,
			sse(`{"candidates":[],"usageMetadata":{"promptTokenCount":100,"thoughtsTokenCount":30,"totalTokenCount":130}}`) +
				sse(fmt.Sprintf(geminiEnd, `{"promptTokenCount":100,"candidatesTokenCount":50,"totalTokenCount":180}`)),
			"100 - 50 30 180", "0.0015", // 100 × 3 + 80 × 15
		},
		{
			"Gemini: thoughts that only the total contains", gen,
			sse(fmt.Sprintf(geminiEnd, `{"promptTokenCount":100,"candidatesTokenCount":50,"totalTokenCount":180}`)),
			"100 - 80 - 180", "0.0015", // 100 × 3 + 80 × 15
		},
		{
			"Gemini: a smaller prompt in the last event", gen,
			sse(`{"candidates":[],"usageMetadata":{"promptTokenCount":120,"totalTokenCount":120}}`) +
				sse(fmt.Sprintf(geminiEnd, `{"promptTokenCount":100,"candidatesTokenCount":50,"totalTokenCount":150}`)),
			"100 - 50 - 150", "0.00105", // 100 × 3 + 50 × 15
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			kind := "application/json"
			if c.answer[0] != '{' {
				kind = "text/event-stream"
			}
			u := serve(t, say(http.StatusOK, kind, c.answer))
			s := setup(u.URL)
			for i := range s.Providers {
				s.Providers[i].Prices = map[string]*usage.Price{"m1": sonnet()}
			}
			r := start(t, s)
			body := modelled
			if c.path == gen {
				body = shortBody
			}
			if got := r.post(c.path, body); got.status != http.StatusOK {
				t.Fatalf("got %+v, want 200", got)
			}
			e := r.next(Requested)
			if e.Usage == nil {
				t.Fatalf("usage: got none in %s, want %s", encode(t, e), c.want)
			}
			cost := "-"
			if e.Cost != nil {
				cost = e.Cost.String()
			}
			got := fmt.Sprint(shown(e.Usage.Input), " ", shown(e.Usage.Cached), " ", shown(e.Usage.Candidates), " ", shown(e.Usage.Thoughts), " ", shown(e.Usage.Total))
			if got != c.want || cost != c.cost {
				t.Errorf("got %s for %s USD, want %s for %s USD", got, cost, c.want, c.cost)
			}
			if c.cost != "-" && (*e.Req.ChargedUSD != *usd(c.cost) || e.Req.Charged != *e.Usage.Total) {
				t.Errorf("charge: got %d tokens and %s USD, want %s tokens and %s USD",
					e.Req.Charged, e.Req.ChargedUSD, shown(e.Usage.Total), c.cost)
			}
			if c.cost == "-" && (e.Sum.Unknown != 1 || e.Req.Charged < 128_000) {
				t.Errorf("charge: got %d tokens with %d unknown requests, want at least 128000 with 1",
					e.Req.Charged, e.Sum.Unknown)
			}
		})
	}
}

// shown prints a count, "-" if it is not reported.
func shown(n *int64) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}

// A request that writes to the cache for an hour reserves at that rate.
func TestAnHourOfCacheIsReserved(t *testing.T) {
	p := tariff{Price: sonnet()}
	five := p.most(1_000_000, 0).usd
	p.hour = true
	if hour := p.most(1_000_000, 0).usd; five != *usd("3.75") || hour != *usd("6") {
		t.Errorf("got %s and %s USD for an hour, want 3.75 and 6", five, hour)
	}
	u := serve(t, say(http.StatusOK, "application/json", `{"stop_reason":"end_turn","usage":{}}`))
	s := setup(u.URL)
	s.Providers[1].Prices = map[string]*usage.Price{"m1": sonnet()}
	r := start(t, s)
	body := `{"model":"m1","max_tokens":100,"system":[{"type":"text","text":"x","cache_control":{"type":"ephemeral","ttl":"1h"}}]}`
	r.post(anthropicPath, body)
	e := r.next(Requested)
	if want := usage.USD(len(body))*6000 + 1_500_000; *e.Req.ChargedUSD != want {
		t.Errorf("got %s USD charged, want %s", e.Req.ChargedUSD, want)
	}
}
