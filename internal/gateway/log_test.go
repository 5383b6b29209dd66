package gateway

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"abl/internal/outcome"
	"abl/internal/usage"
)

func TestLastTrouble(t *testing.T) {
	n := int64(5)
	at := 0
	line := func(r Request, u *usage.Count) Entry {
		at++
		r.Class = "generate"
		return Entry{Kind: Requested, Call: "c", At: fmt.Sprintf("2026-03-01T12:00:%02d.000Z", at), Reason: string(r.Trouble) + "!", Req: &r, Usage: u}
	}
	good := line(Request{Status: 200, Finish: "STOP"}, &usage.Count{Total: &n})
	rate := line(Request{Status: 429, Trouble: "rate", RetryMS: 30_000}, &usage.Count{})
	load := line(Request{Status: 503, Trouble: "away"}, &usage.Count{})
	odd := line(Request{Status: 400, Trouble: outcome.Failed}, &usage.Count{})
	left := line(Request{Aborted: true}, nil)
	cut := line(Request{Status: 200, Model: "m", Finish: "length"}, &usage.Count{Total: &n})
	aside := line(Request{Status: 200, Finish: "length", MaxTokens: 9}, &usage.Count{Total: &n})
	denied := line(Request{Status: 403, Refused: true, Provider: "gemini"}, nil)
	wrong := line(Request{Status: 200, Trouble: outcome.Unavailable}, &usage.Count{})
	long := line(Request{Status: 200}, &usage.Count{})
	free := line(Request{Status: 500, Trouble: "away", Free: true}, nil)
	over := line(Request{Status: 403, Refused: true, Over: true}, nil)
	held := line(Request{Status: 403, Refused: true, Held: true}, nil)
	gone := line(Request{Status: 400, Refused: true, Aborted: true}, nil)
	body := line(Request{Status: 413, Refused: true, Provider: "gemini"}, nil)
	path := line(Request{Status: 404, Refused: true, Provider: "gemini"}, nil)
	path.Req.Class = ""
	title := line(Request{Status: 200, Finish: "STOP", Aside: true}, &usage.Count{Total: &n})
	noTitle := line(Request{Status: 503, Trouble: "away", Aside: true}, &usage.Count{})
	cutTitle := line(Request{Status: 200, Finish: "length", Aside: true}, &usage.Count{Total: &n})
	leftTitle := line(Request{Aborted: true, Aside: true}, nil)
	deniedTitle := line(Request{Status: 403, Refused: true, Provider: "gemini", Aside: true}, nil)
	leftAmid := line(Request{Status: 200, Aborted: true}, &usage.Count{})
	leftAtItsEnd := line(Request{Status: 200, Aborted: true, Finish: "STOP"}, &usage.Count{})
	leftCut := line(Request{Status: 200, Model: "m", Aborted: true, Finish: "length"}, &usage.Count{})
	wrongCall := line(Request{Status: 200, Model: "m", Finish: "MALFORMED_FUNCTION_CALL"}, &usage.Count{})
	large := line(Request{Status: 400, Trouble: outcome.TooLarge}, &usage.Count{})
	calls := line(Request{Status: 200, Finish: "tool_calls", Calls: true}, &usage.Count{Total: &n})
	other := load
	other.Call = "d"
	for _, c := range []struct {
		name string
		log  []Entry
		want string
	}{
		{"nothing-passed", nil, ""},
		{"the-last-answer-calls-a-tool", []Entry{good, calls, title}, "calls"},
		{"an-answer-follows-the-call-of-a-tool", []Entry{calls, good}, ""},
		{"all-is-well", []Entry{rate, load, good}, ""},
		{"three-in-a-row-the-last-counts", []Entry{good, load, load, rate}, "rate rate! back 12:00:32 unfinished"},
		{"it-left-after-an-error", []Entry{rate, left}, "rate rate! back 12:00:32 waiting left unfinished"},
		{"it-left-after-an-error-and-tried-again", []Entry{left, rate}, "rate rate! back 12:00:32 unfinished"},
		{"it-waited-in-vain", []Entry{good, left}, "waiting left"},
		{"the-request-was-at-fault", []Entry{load, odd}, "failed! unfinished"},
		{"a-request-was-at-fault-before-the-trouble", []Entry{odd, load}, "away away! unfinished"},
		{"no-answer-of-a-models", []Entry{good, wrong}, "away away! unfinished"},
		{"an-end-that-is-too-long-to-be-read", []Entry{load, long}, ""},
		{"what-is-free-refused-or-anothers", []Entry{load, free, over, other}, "away away! unfinished"},
		{"a-cut-answer", []Entry{load, cut}, "cut the last response of m was cut off at the token limit of the model (length) unfinished"},
		{"a-cut-answer-before-the-trouble", []Entry{cut, load}, "away away! unfinished"},
		{"a-cut-answer-that-the-agent-left", []Entry{good, leftCut}, "cut the last response of m was cut off at the token limit of the model (length) unfinished"},
		{"a-call-of-a-function-that-is-none", []Entry{good, wrongCall}, "the last response of m ended with MALFORMED_FUNCTION_CALL unfinished"},
		{"one-that-was-to-be-short", []Entry{cut, aside}, "cut the last response of m was cut off at the token limit of the model (length) unfinished"},
		{"one-that-was-to-be-short-and-no-other", []Entry{aside}, ""},
		{"trouble-before-one-that-was-to-be-short", []Entry{load, aside}, "away away! unfinished"},
		{"one-that-was-refused", []Entry{good, denied}, "denied abl's gateway refused a request of the agent: ! unfinished"},
		{"one-that-was-refused-and-trouble", []Entry{load, denied}, "away away! unfinished"},
		{"one-that-was-refused-and-got-over", []Entry{denied, good}, ""},
		{"a-path-that-was-refused", []Entry{good, path}, "denied abl's gateway refused a request of the agent: !"},
		{"the-budget-refused-one", []Entry{good, over}, "unfinished"},
		{"one-was-held-after-trouble", []Entry{good, load, held}, "away away! unfinished"},
		{"the-agent-left-while-it-waited-for-room", []Entry{good, gone}, "left"},
		{"the-agent-left-amid-an-answer", []Entry{good, leftAmid}, "waiting left"},
		{"the-agent-left-amid-an-answer-after-trouble", []Entry{load, leftAmid}, "away away! waiting left"},
		{"the-agent-left-at-the-end-of-an-answer", []Entry{load, leftAtItsEnd}, ""},
		{"a-title-fails-before-the-work-ends", []Entry{noTitle, good}, ""},
		{"a-title-fails-after-the-work", []Entry{good, noTitle}, "away away!"},
		{"a-title-fails-and-works", []Entry{good, noTitle, title}, ""},
		{"a-title-works-after-the-work-failed", []Entry{load, title}, "away away! unfinished"},
		{"a-title-is-cut-after-the-work", []Entry{good, cutTitle}, ""},
		{"a-title-is-left-after-the-work", []Entry{good, leftTitle}, "waiting"},
		{"a-title-is-refused-after-the-work", []Entry{good, deniedTitle}, "denied abl's gateway refused a request of the agent: !"},
		{"a-title-fails-and-work-is-held", []Entry{good, noTitle, held}, "away away! unfinished"},
		{"an-agent-without-tools", []Entry{title, noTitle}, "away away! unfinished"},
		{"an-agent-without-tools-is-refused", []Entry{title, deniedTitle}, "denied abl's gateway refused a request of the agent: !"},
		{"a-body-that-is-too-long", []Entry{body}, "denied abl's gateway refused a request of the agent: ! unfinished"},
		{"a-body-that-became-too-long", []Entry{good, body}, "denied abl's gateway refused a request of the agent: ! grown unfinished"},
		{"too-long-from-the-start", []Entry{title, large}, "large large! unfinished"},
		{"too-long-after-the-work", []Entry{good, large}, "large large! grown unfinished"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := LastTrouble(c.log, "c")
			var words []string
			for _, word := range []struct {
				is   bool
				text string
			}{
				{got.Class != "", string(got.Class)}, {got.What != "", got.What},
				{!got.Back.IsZero(), "back " + got.Back.Format(time.TimeOnly)},
				{got.Waiting, "waiting"}, {got.Left, "left"}, {got.Grown, "grown"}, {got.Unfinished, "unfinished"}, {got.Calls, "calls"},
			} {
				if word.is {
					words = append(words, word.text)
				}
			}
			if text := strings.Join(words, " "); text != c.want {
				t.Errorf("got %q, want %q", text, c.want)
			}
		})
	}
}

// streamed is the beginning of an answer, with a usage that is not the last.
const streamed = "data: {\"candidates\":[],\"usageMetadata\":{\"promptTokenCount\":7,\"totalTokenCount\":7}}\n\n"

// TestTroubleInTheLog checks the class of each fault of a provider in the log.
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
		}, outcome.Network, 502, "the provider did not respond"},
		"half an answer": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte(`{"candidates":`))
		}, outcome.Unavailable, 200, "is incomplete"},
		"half an error": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			w.WriteHeader(429)
			_, _ = w.Write([]byte(`{"error":`))
		}, outcome.RateLimited, 429, ""},
		"silence": {func(_ http.ResponseWriter, q *http.Request) { <-q.Context().Done() }, outcome.Unavailable, 504, "silent"},
		"nobody behind a forwarder": {func(w http.ResponseWriter, q *http.Request) {
			w.Header().Set(NoAnswer, Asked)
			say(502, "text/plain", "the server does not respond: EOF")(w, q)
		}, outcome.Network, 502, "not respond: EOF"},
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
			r.post("/gemini/v1beta/models/m1:generateContent", shortBody)
			e := r.next(Requested)
			got := LastTrouble([]Entry{e}, callID)
			if got.Class != c.class || e.Req.Status != c.status || !strings.Contains(got.What, c.says) {
				t.Errorf("trouble: got %+v in %s, want class %q, status %d, a text with %q",
					got, encode(t, e), c.class, c.status, c.says)
			}
			if strings.Contains(r.log(), realKey) {
				t.Errorf("log: got %s, want one without the key", r.log())
			}
			if broken := strings.Contains(name, "end of") || strings.HasPrefix(name, "half an") || name == "wrong"; e.Req.Part != broken {
				t.Errorf("part of a response: got %t in %s, want %t", e.Req.Part, encode(t, e), broken)
			}
			if name == "a rate limit" && e.Req.RetryMS != 9000 {
				t.Errorf("wait after a rate limit: got %d ms, want 9000", e.Req.RetryMS)
			}
		})
	}
}
