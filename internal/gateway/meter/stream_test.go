package meter

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"abl/internal/outcome"
)

// Errors that a provider reports after its status, with each API, and texts that only look like an
// error.
func TestFailed(t *testing.T) {
	const fine = "data: {\"candidates\":[]}\n\n"
	for _, c := range []struct {
		name, text string
		want       Problem
		failed     bool
	}{
		{"nothing", "", Problem{}, false},
		{"a good stream", fine + fine, Problem{}, false},
		{"a good document", `{"candidates":[]}`, Problem{}, false},
		{"a good list", `[{"a":1},{"b":2}]`, Problem{}, false},
		{"anthropic, load", "event: message_start\ndata: {\"type\":\"message_start\"}\n\nevent: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n", Problem{outcome.Unavailable, false, 0, "Overloaded"}, true},
		{"anthropic, rate", "data: {\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"slow\"}}\r\n\r\n", Problem{outcome.RateLimited, false, 0, "slow"}, true},
		{"anthropic, its own", "data: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"Internal server error\"}}\n\n", Problem{outcome.Unavailable, false, 0, "Internal server error"}, true},
		{"anthropic, the request", "data: {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"bad\"}}\n\n", Problem{outcome.Failed, false, 0, "bad"}, true},
		{"responses, an event", "event: error\ndata: {\"type\":\"error\",\"code\":\"rate_limit_exceeded\",\"message\":\"slow\",\"param\":null,\"sequence_number\":3}\n\n", Problem{outcome.RateLimited, false, 0, "slow"}, true},
		{"responses, the end", "data: {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\"error\":{\"code\":\"server_error\",\"message\":\"boom\"}}}\n\n", Problem{outcome.Unavailable, false, 0, "boom"}, true},
		{"responses, no money", "data: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"insufficient_quota\",\"message\":\"pay\"}}}\n\n", Problem{outcome.Quota, true, 0, "pay"}, true},
		{"responses, too long", "data: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"context_length_exceeded\",\"message\":\"long\"}}}\n\n", Problem{outcome.TooLarge, false, 0, "long"}, true},
		{"responses, well", "data: {\"type\":\"response.completed\",\"response\":{\"error\":null}}\n\n", Problem{}, false},
		{"chat", fine + "data: {\"error\":{\"message\":\"overloaded\",\"type\":\"server_error\",\"code\":null}}\n\ndata: [DONE]\n\n", Problem{outcome.Unavailable, false, 0, "overloaded"}, true},
		{"gemini, load", fine + "data: {\"error\":{\"code\":503,\"message\":\"The model is overloaded.\",\"status\":\"UNAVAILABLE\"}}\n\n", Problem{outcome.Unavailable, false, 0, "The model is overloaded."}, true},
		{"gemini, a day's quota, and when", "data: {\"error\":{\"code\":429,\"message\":\"q\",\"details\":[{\"violations\":[{\"quotaId\":\"RequestsPerDay\"}]},{\"retryDelay\":\"9s\"}]}}", Problem{outcome.Quota, false, 9 * time.Second, "q"}, true},
		{"gemini, in a list", "[{\"candidates\":[]}\n,\r\n{\n  \"error\": {\n    \"code\": 500,\n    \"message\": \"Internal\"\n  }\n}\n]", Problem{outcome.Unavailable, false, 0, "Internal"}, true},
		{"one document", `{"error":{"message":"no","status":"RESOURCE_EXHAUSTED"}}`, Problem{outcome.RateLimited, false, 0, "no"}, true},
		{"a model's words", `data: {"text":"{\"error\":{\"code\":503}}"}`, Problem{}, false},
		{"a function's arguments", `[{"args":{"all":[{"error":{"code":503}}]}}]`, Problem{}, false},
		{"an error before a good end", "data: {\"error\":{\"code\":503}}\n\ndata: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\n", Problem{}, false},
		{"an error and no end after it", "data: {\"error\":{\"code\":503,\"message\":\"load\"}}\n\n" + fine, Problem{outcome.Unavailable, false, 0, "load"}, true},
		{"an error and no end after it, in a list", `[{"error":{"code":503,"message":"load"}},{"choices":[]}]`, Problem{outcome.Unavailable, false, 0, "load"}, true},
		{"an error that is the end", `data: {"error":{"code":502,"message":"load"},"choices":[{"finish_reason":"error"}]}` + "\n\n", Problem{outcome.Unavailable, false, 0, "load"}, true},
		{"an error after the end", "data: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\ndata: {\"error\":{\"code\":503,\"message\":\"load\"}}\n\n", Problem{outcome.Unavailable, false, 0, "load"}, true},
		{"an empty error", `{"error":"","id":1}`, Problem{}, false},
		{"no words", `{"error":{"code":503}}`, Problem{outcome.Unavailable, false, 0, "an error without a message"}, true},
		{"brackets", strings.Repeat(",{", 2000) + "]", Problem{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := New(Chat)
			m.Write([]byte(c.text))
			got, failed := m.Failed(http.Header{}, noon)
			if got != c.want || failed != c.failed {
				t.Errorf("got  %+v %t\nwant %+v %t", got, failed, c.want, c.failed)
			}
		})
	}
}

// TestForm checks which answers are damaged, and which are too long to be read.
func TestForm(t *testing.T) {
	const event = "data: {\"candidates\":[]}\n\n"
	huge := "data: {\"x\":\"" + strings.Repeat("long ", longest/4) + "\"}\n\n"
	for _, c := range []struct {
		name, text           string
		broken, torn, unread bool // torn: only if the provider ended the response
	}{
		{"a-stream", event + event + "data: [DONE]\n\n", false, false, false},
		{"a-stream-without-its-last-line-break", event + "data: {\"candidates\":[]}", false, false, false},
		{"an-event-that-is-cut", event + "data: {\"candidates\":", false, true, false},
		{"an-event-that-is-cut-behind-a-line", event + "data: {\"candidates\":\n", false, true, false},
		{"an-event-that-is-broken", event + "data: {\"candidates\": [ no json\n\n" + event, true, true, false},
		{"an-event-of-words", event + "data: upstream error\n\n", true, true, false},
		{"comments-and-names", ": ping\n\nevent: message_stop\nid: 1\n\n" + event, false, false, false},
		{"an-event-of-two-lines", "data: {\"candidates\":\ndata: []}\n\n", false, false, false},
		{"an-event-that-is-too-long", huge + event, false, false, true},
		{"a-document", `{"candidates":[]}`, false, false, false},
		{"a-document-that-is-cut", `{"candidates":`, false, true, false},
		{"a-document-that-is-too-long", `{"x":"` + strings.Repeat("long ", longest/4) + `"}`, false, false, true},
		{"a-list", `[{"candidates":[]}]`, false, false, false},
		{"a-list-that-is-cut", `[{"candidates":[]},`, false, true, false},
		{"a-page", "<html>data</html>", false, false, false},
		{"nothing", "", false, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, size := range []int{1 << 30, 7} {
				m := New(Gemini)
				for text := c.text; text != ""; {
					n := min(size, len(text))
					m.Write([]byte(text[:n]))
					text = text[n:]
				}
				got := [...]bool{m.Broken(false), m.Broken(true), m.Unread()}
				if want := [...]bool{c.broken, c.torn, c.unread}; got != want {
					t.Errorf("in pieces of %d: got %t, want %t (broken, torn, unread)", size, got, want)
				}
			}
		})
	}
}
