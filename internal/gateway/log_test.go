package gateway

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"abl/internal/outcome"
	"abl/internal/tokens"
)

func TestLastTrouble(t *testing.T) {
	n := int64(5)
	at := 0
	line := func(r Request, u *tokens.Count) Entry {
		at++
		return Entry{Kind: Requested, Call: "c", At: fmt.Sprintf("2026-03-01T12:00:%02d.000Z", at), Reason: string(r.Trouble) + "!", Req: &r, Usage: u}
	}
	good := line(Request{Status: 200, Finish: "STOP"}, &tokens.Count{Total: &n})
	rate := line(Request{Status: 429, Trouble: "rate", RetryMS: 30_000}, &tokens.Count{})
	load := line(Request{Status: 503, Trouble: "away"}, &tokens.Count{})
	odd := line(Request{Status: 400, Trouble: outcome.Failed}, &tokens.Count{})
	left := line(Request{Aborted: true}, nil)
	cut := line(Request{Status: 200, Model: "m", Finish: "length"}, &tokens.Count{Total: &n})
	aside := line(Request{Status: 200, Finish: "length", MaxTokens: 9}, &tokens.Count{Total: &n})
	denied := line(Request{Status: 403, Refused: true, Provider: "gemini"}, nil)
	wrong := line(Request{Status: 200}, &tokens.Count{})
	free := line(Request{Status: 500, Trouble: "away", Free: true}, nil)
	over := line(Request{Status: 403, Refused: true, Over: true}, nil)
	wrong.Reason = ""
	other := load
	other.Call = "d"
	for _, c := range []struct {
		name string
		log  []Entry
		want string
	}{
		{"nothing-passed", nil, " false"},
		{"all-is-well", []Entry{rate, load, good}, " false"},
		{"three-in-a-row-the-last-counts", []Entry{good, load, load, rate}, "rate false rate! 12:00:32"},
		{"it-left-after-an-error", []Entry{rate, left}, "rate true rate! 12:00:32"},
		{"it-left-after-an-error-and-tried-again", []Entry{left, rate}, "rate false rate! 12:00:32"},
		{"it-waited-in-vain", []Entry{good, left}, " true"},
		{"the-request-was-at-fault", []Entry{load, odd}, " false failed!"},
		{"a-request-was-at-fault-before-the-trouble", []Entry{odd, load}, "away false away!"},
		{"no-answer-of-a-models", []Entry{good, wrong}, "away false the provider answers 200 with what is no answer of a model"},
		{"what-is-free-refused-or-anothers", []Entry{load, free, over, other}, "away false away!"},
		{"a-cut-answer", []Entry{load, cut}, "cut false the last answer of m was cut at the model's own limit of tokens for one (length)"},
		{"a-cut-answer-before-the-trouble", []Entry{cut, load}, "away false away!"},
		{"one-that-was-to-be-short", []Entry{cut, aside}, "cut false the last answer of m was cut at the model's own limit of tokens for one (length)"},
		{"trouble-before-one-that-was-to-be-short", []Entry{load, aside}, " false"},
		{"one-that-was-refused", []Entry{good, denied}, "denied false abl's gateway refuses the agent's request: !"},
		{"one-that-was-refused-and-trouble", []Entry{load, denied}, "away false away!"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := LastTrouble(c.log, "c")
			text := fmt.Sprintf("%s %t", got.Class, got.Waiting)
			if got.What != "" {
				text += " " + got.What
			}
			if !got.Back.IsZero() {
				text += " " + got.Back.Format(time.TimeOnly)
			}
			if text != c.want {
				t.Errorf("got %s, want %s", text, c.want)
			}
		})
	}
}

// streamed is the beginning of an answer, with a usage that is not the last.
const streamed = "data: {\"candidates\":[],\"usageMetadata\":{\"promptTokenCount\":7,\"totalTokenCount\":7}}\n\n"

// What each fault of a provider is called in the log.
func TestTroubleInTheLog(t *testing.T) {
	rich := `{"error":{"message":"slow down, sk-REAL-canary-9f8e7d6c5b4a","status":"RESOURCE_EXHAUSTED"}}`
	for name, c := range map[string]struct {
		does   http.HandlerFunc
		class  outcome.Outcome
		status int
		says   string
	}{
		"a rate limit": {func(w http.ResponseWriter, q *http.Request) {
			w.Header().Set("Retry-After", "9")
			say(429, "application/json", rich)(w, q)
		}, outcome.RateLimited, 429, "slow down"},
		"an error":  {say(500, "text/plain", "boom"), outcome.Unavailable, 500, "Internal Server Error"},
		"a refusal": {say(401, "application/json", `{"error":{"message":"no such key"}}`), outcome.Refused, 401, "no such key"},
		"a reset": {func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				conn.Close()
			}
		}, outcome.Network, 502, "the provider gave no answer"},
		"half an answer": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte(`{"candidates":`))
		}, outcome.Unavailable, 200, "has no end"},
		"half an error": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			w.WriteHeader(429)
			_, _ = w.Write([]byte(`{"error":`))
		}, outcome.RateLimited, 429, ""},
		"silence": {func(_ http.ResponseWriter, q *http.Request) { <-q.Context().Done() }, outcome.Unavailable, 504, "no answer"},
		"nobody behind a forwarder": {func(w http.ResponseWriter, q *http.Request) {
			w.Header().Set(NoAnswer, Asked)
			say(502, "text/plain", "the server gives no answer: EOF")(w, q)
		}, outcome.Network, 502, "no answer: EOF"},
		"an error at the end of a stream": {say(200, "text/event-stream", streamed+"data: {\"error\":{\"code\":503,\"message\":\"overloaded\",\"status\":\"UNAVAILABLE\"}}\n\n"), outcome.Unavailable, 200, "overloaded"},
		"an error at the end of half an answer": {func(w http.ResponseWriter, q *http.Request) {
			w.Header().Set("Content-Length", "1000")
			say(200, "text/event-stream", streamed+"data: {\"error\":{\"code\":429,\"message\":\"slow down\"}}\n\n")(w, q)
		}, outcome.RateLimited, 200, "slow down"},
		"wrong": {say(200, "application/json", `{"hello":"world"}`), outcome.Unavailable, 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(serve(t, c.does).URL)
			s.Limits.HeadersMS = 2000
			r := start(t, s)
			r.post("/gemini/v1beta/models/m1:generateContent", someBody)
			e := r.next(Requested)
			got := LastTrouble([]Entry{e}, callID)
			if got.Class != c.class || e.Req.Status != c.status || !strings.Contains(got.What, c.says) {
				t.Errorf("%+v in %s", got, encode(t, e))
			}
			if strings.Contains(r.log(), realKey) {
				t.Errorf("the key is in %s", r.log())
			}
			if broken := strings.Contains(name, "end of") || strings.HasPrefix(name, "half an"); e.Req.Part != broken {
				t.Errorf("a part %t in %s", e.Req.Part, encode(t, e))
			}
			if name == "a rate limit" && e.Req.RetryMS != 9000 {
				t.Errorf("retry after %d ms", e.Req.RetryMS)
			}
		})
	}
}
