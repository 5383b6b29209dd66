package gateway

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"abl/internal/gateway/meter"
	"abl/internal/helper"
	"abl/internal/tokens"
)

func TestLastTrouble(t *testing.T) {
	n := int64(5)
	at := 0
	line := func(r Request, u *tokens.Count) Entry {
		at++
		return Entry{Kind: Requested, Call: "c", At: fmt.Sprintf("2026-03-01T12:00:%02d.000Z", at), Reason: r.Trouble + "!", Req: &r, Usage: u}
	}
	good := line(Request{Status: 200, Finish: "STOP"}, &tokens.Count{Total: &n})
	rate := line(Request{Status: 429, Trouble: "rate", RetryMS: 30_000}, &tokens.Count{})
	load := line(Request{Status: 503, Trouble: "away"}, &tokens.Count{})
	odd := line(Request{Status: 400, Trouble: "odd"}, &tokens.Count{})
	left := line(Request{Aborted: true}, nil)
	wrong := line(Request{Status: 200}, &tokens.Count{})
	free := line(Request{Status: 500, Trouble: "away", Free: true}, nil)
	over := line(Request{Status: 403, Refused: true, Over: true}, nil)
	other := load
	other.Call = "d"
	for _, c := range []struct {
		name string
		log  []Entry
		want string
	}{
		{"nothing passed", nil, " 0 0 false"},
		{"all is well", []Entry{rate, load, good}, " 0 0 false"},
		{"three in a row, the last counts", []Entry{good, load, load, rate}, "rate 429 3 false 12:00:32"},
		{"it left after an error", []Entry{rate, left}, "rate 429 1 true 12:00:32"},
		{"it left after an error and tried again", []Entry{left, rate}, "rate 429 1 false 12:00:32"},
		{"it waited in vain", []Entry{good, left}, " 0 0 true"},
		{"the request was at fault", []Entry{load, odd}, "odd 400 0 false"},
		{"a request was at fault before the trouble", []Entry{odd, load}, "away 503 1 false"},
		{"no answer of a model's", []Entry{good, wrong}, "garbled 200 1 false"},
		{"what is free, refused or another's", []Entry{load, free, over, other}, "away 503 1 false"},
	} {
		got := LastTrouble(c.log, "c")
		text := fmt.Sprintf("%s %d %d %t", got.Kind, got.Status, got.Times, got.Waiting)
		if !got.Back.IsZero() {
			text += " " + got.Back.Format(time.TimeOnly)
		}
		if text != c.want || got.Kind != "" && got.Kind != meter.Garbled && got.Words != string(got.Kind)+"!" {
			t.Errorf("%s: %s (%q), want %s", c.name, text, got.Words, c.want)
		}
	}
}

// streamed is the beginning of an answer, with a usage that is not the last.
const streamed = "data: {\"candidates\":[],\"usageMetadata\":{\"promptTokenCount\":7,\"totalTokenCount\":7}}\n\n"

// What each fault of a provider is called in the log.
func TestTroubleInTheLog(t *testing.T) {
	rich := `{"error":{"message":"slow down, sk-REAL-canary-9f8e7d6c5b4a","status":"RESOURCE_EXHAUSTED"}}`
	for name, c := range map[string]struct {
		does   http.HandlerFunc
		kind   meter.Kind
		status int
		says   string
	}{
		"a rate limit": {func(w http.ResponseWriter, q *http.Request) {
			w.Header().Set("Retry-After", "9")
			say(429, "application/json", rich)(w, q)
		}, meter.Rate, 429, "slow down"},
		"an error":  {say(500, "text/plain", "boom"), meter.Away, 500, "Internal Server Error"},
		"a refusal": {say(401, "application/json", `{"error":{"message":"no such key"}}`), meter.Login, 401, "no such key"},
		"a reset": {func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				conn.Close()
			}
		}, meter.Network, 502, "the provider gave no answer"},
		"half an answer": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte(`{"candidates":`))
		}, meter.Cut, 200, "has no end"},
		"half an error": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			w.WriteHeader(429)
			_, _ = w.Write([]byte(`{"error":`))
		}, meter.Rate, 429, ""},
		"silence": {func(_ http.ResponseWriter, q *http.Request) { <-q.Context().Done() }, meter.Silent, 504, "no answer"},
		"nobody behind a forwarder": {func(w http.ResponseWriter, q *http.Request) {
			w.Header().Set(helper.NoAnswer, helper.Asked)
			say(502, "text/plain", "the server gives no answer: EOF")(w, q)
		}, meter.Network, 502, "no answer: EOF"},
		"an error at the end of a stream": {say(200, "text/event-stream", streamed+"data: {\"error\":{\"code\":503,\"message\":\"overloaded\",\"status\":\"UNAVAILABLE\"}}\n\n"), meter.Away, 200, "overloaded"},
		"an error at the end of half an answer": {func(w http.ResponseWriter, q *http.Request) {
			w.Header().Set("Content-Length", "1000")
			say(200, "text/event-stream", streamed+"data: {\"error\":{\"code\":429,\"message\":\"slow down\"}}\n\n")(w, q)
		}, meter.Rate, 200, "slow down"},
		"wrong": {say(200, "application/json", `{"hello":"world"}`), meter.Garbled, 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(serve(t, c.does).URL)
			s.Limits.HeadersMS = 2000
			r := start(t, s)
			r.post("/gemini/v1beta/models/m1:generateContent", someBody)
			e := r.next(Requested)
			got := LastTrouble([]Entry{e}, callID)
			if got.Kind != c.kind || got.Status != c.status || !strings.Contains(got.Words, c.says) {
				t.Errorf("%+v in %s", got, encode(t, e))
			}
			if strings.Contains(r.log(), realKey) {
				t.Errorf("the key is in %s", r.log())
			}
			if e.Req.Broken != strings.HasPrefix(name, "an error at the end") || got.Broken != e.Req.Broken || e.Req.Broken && !e.Req.Part {
				t.Errorf("broken %t, a part %t in %s", e.Req.Broken, e.Req.Part, encode(t, e))
			}
			if name == "a rate limit" && e.Req.RetryMS != 9000 {
				t.Errorf("retry after %d ms", e.Req.RetryMS)
			}
		})
	}
}
