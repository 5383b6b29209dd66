package gateway

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"abl/internal/outcome"
)

// spoken is one API: the path and body of a request, the events of a response before its end, and
// those that end it.
type spoken struct {
	name, path, body        string
	begin, end, limit, fail string
}

// tooled is a request with a tool.
const tooled = `{"model":"m1","tools":[{"type":"function","name":"f"}]}`

var spokenAPIs = []spoken{
	{
		name: "gemini", path: gen, body: `{"contents":[],"tools":[{"functionDeclarations":[]}]}`,
		begin: `data: {"candidates":[{"content":{"parts":[{"text":"words"}]}}],"usageMetadata":{"promptTokenCount":7,"totalTokenCount":7}}` + "\n\n",
		end:   `data: {"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":3,"totalTokenCount":10}}` + "\n\n",
		limit: `data: {"candidates":[{"finishReason":"MAX_TOKENS"}],"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":3,"totalTokenCount":10}}` + "\n\n",
		fail:  `data: {"error":{"code":503,"message":"load","status":"UNAVAILABLE"}}` + "\n\n",
	},
	{
		name: "anthropic", path: "/anthropic/v1/messages", body: `{"model":"m1","tools":[{"name":"f"}]}`,
		begin: `data: {"type":"message_start","message":{"stop_reason":null,"usage":{"input_tokens":7,"output_tokens":1}}}` + "\n\n" +
			`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"words"}}` + "\n\n",
		end: `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}` + "\n\n" +
			`data: {"type":"message_stop"}` + "\n\n",
		limit: `data: {"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":3}}` + "\n\n" +
			`data: {"type":"message_stop"}` + "\n\n",
		fail: "event: error\n" + `data: {"type":"error","error":{"type":"overloaded_error","message":"load"}}` + "\n\n",
	},
	{
		name: "responses", path: "/openai-responses/v1/responses", body: tooled,
		begin: `data: {"type":"response.created","response":{"status":"in_progress"}}` + "\n\n" +
			`data: {"type":"response.output_text.delta","delta":"words"}` + "\n\n",
		end:   `data: {"type":"response.completed","response":{"usage":{"input_tokens":7,"output_tokens":3,"total_tokens":10}}}` + "\n\n",
		limit: `data: {"type":"response.incomplete","response":{"status":"incomplete","usage":{"input_tokens":7,"output_tokens":3,"total_tokens":10}}}` + "\n\n",
		fail:  `data: {"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"load"}}}` + "\n\n",
	},
	{
		name: "chat", path: "/openai-chat/v1/chat/completions", body: tooled,
		begin: `data: {"choices":[{"delta":{"content":"words"},"finish_reason":null}],` + // some servers report usage in each event
			`"usage":{"prompt_tokens":7,"completion_tokens":1,"total_tokens":8}}` + "\n\n",
		end: `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}` + "\n\n" +
			`data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}` + "\n\ndata: [DONE]\n\n",
		limit: `data: {"choices":[{"delta":{},"finish_reason":"length"}]}` + "\n\n" +
			`data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}` + "\n\ndata: [DONE]\n\n",
		fail: `data: {"error":{"message":"load","type":"server_error"}}` + "\n\ndata: [DONE]\n\n",
	},
}

// A fault of a response has the same class with every API, and the cost of a response without an end
// is unknown.
func TestFaultsOfAnswers(t *testing.T) {
	const broken = "data: {\"candidates\": [ no json\n\n"
	const noEnd, load = "has no finish reason", "ended its response with an error: load"
	const damaged, noModel = "a part of it is not JSON", "something other than a response of a model"
	for _, f := range []struct {
		name    string
		cut     bool // the provider breaks the connection
		class   outcome.Outcome
		says    string
		unknown int64 // responses of unknown cost; -1 for any number
		answer  func(s spoken) string
	}{
		{"complete", false, "", "", 0, func(s spoken) string { return s.begin + s.end }},
		{"without-an-end", false, outcome.Unavailable, noEnd, 1, func(s spoken) string { return s.begin }},
		{"broken-off", true, outcome.Unavailable, "is incomplete: unexpected EOF", 1, func(s spoken) string { return s.begin }},
		{"an-error", false, outcome.Unavailable, load, 1, func(s spoken) string { return s.begin + s.fail }},
		{"an-error-and-words", false, outcome.Unavailable, load, 1, func(s spoken) string { return s.begin + s.fail + s.begin }},
		{"no-json", false, outcome.Unavailable, damaged, 1, func(s spoken) string { return s.begin + broken }},
		{"no-json-in-it", false, outcome.Unavailable, damaged, -1, func(s spoken) string { return s.begin + broken + s.end }},
		{"half-an-event", false, outcome.Unavailable, damaged, 1, func(s spoken) string { return s.begin + s.end[:20] }},
		{"cut", false, outcome.Cut, "was cut off at the token limit of the model", 0, func(s spoken) string { return s.begin + s.limit }},
		{"empty", false, outcome.Unavailable, noModel, 1, func(spoken) string { return "" }},
		{"a-page", false, outcome.Unavailable, noModel, 1, func(spoken) string { return "<html>hello</html>" }},
	} {
		for _, s := range spokenAPIs {
			t.Run(f.name+"/"+s.name, func(t *testing.T) {
				t.Parallel()
				u := serve(t, func(w http.ResponseWriter, _ *http.Request) {
					_, _ = io.WriteString(w, f.answer(s))
					flush(w)
					if f.cut {
						panic(http.ErrAbortHandler)
					}
				})
				r := start(t, setup(u.URL))
				r.post(s.path, s.body)
				e := r.next(Requested)
				got := LastTrouble([]Entry{e}, callID)
				if got.Class != f.class || !strings.Contains(got.What, f.says) || got.Unfinished != (f.class != "") {
					t.Errorf("got %+v, want class %q, %q", got, f.class, f.says)
				}
				if f.unknown >= 0 && e.Sum.Unknown != f.unknown || e.Req.Aside {
					t.Errorf("got %d answers of unknown cost, aside %t, want %d, false: %s",
						e.Sum.Unknown, e.Req.Aside, f.unknown, encode(t, e))
				}
				if f.unknown == 1 && e.Req.Charged < most {
					t.Errorf("charge: got %d tokens, want at least the %d of the request", e.Req.Charged, most)
				}
			})
		}
	}
}

// A client that disconnects after the end of a response, or after an error in it, does not change its
// class.
func TestClientThatLeavesAtTheEnd(t *testing.T) {
	for _, f := range []struct {
		name   string
		answer func(s spoken) string
		class  outcome.Outcome
	}{
		{"complete", func(s spoken) string { return s.end }, ""},
		{"cut-at-a-limit", func(s spoken) string { return s.limit }, outcome.Cut},
		{"an-error-in-the-stream", func(s spoken) string { return s.fail }, outcome.Unavailable},
		{"an-event-that-is-no-json", func(spoken) string { return "data: { no json\n\n" }, outcome.Unavailable},
	} {
		for _, s := range spokenAPIs {
			t.Run(f.name+"/"+s.name, func(t *testing.T) {
				t.Parallel()
				u := serve(t, func(w http.ResponseWriter, q *http.Request) {
					_, _ = io.WriteString(w, s.begin+f.answer(s))
					flush(w)
					hold(q)
				})
				r := start(t, setup(u.URL))
				to := "http://" + r.addr + "/" + callID + s.path
				q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to, strings.NewReader(s.body))
				if err != nil {
					t.Fatal(err)
				}
				q.Header.Set("X-Goog-Api-Key", callTok)
				resp, err := client.Do(q)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := io.ReadFull(resp.Body, make([]byte, len(s.begin+f.answer(s)))); err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				e := r.next(Requested)
				got := LastTrouble([]Entry{e}, callID)
				if got.Class != f.class || got.Unfinished != (f.class != "") || !e.Req.Aborted {
					t.Errorf("got %+v of %s, want class %q and a client that left", got, encode(t, e), f.class)
				}
			})
		}
	}
}

// Requests without tools are asides, with every API.
func TestAsides(t *testing.T) {
	const chat, responses = "/openai-chat/v1/chat/completions", "/openai-responses/v1/responses"
	const messages = "/anthropic/v1/messages"
	r := start(t, setup(serve(t, say(200, "application/json", "{}")).URL))
	for i, c := range []struct {
		path, body string
		aside      bool
	}{
		{gen, `{"contents":[]}`, true},
		{gen, `{"contents":[],"tools":[ ]}`, true},
		{gen, `{"contents":[],"tools":null}`, true},
		{gen, `{"contents":[],"tools":[{"functionDeclarations":[]}]}`, false},
		{messages, `{"model":"m1","messages":[]}`, true},
		{messages, `{"model":"m1","tools":[{"name":"f"}]}`, false},
		{chat, `{"model":"m1","functions":[{"name":"f"}]}`, false},
		{chat, tooled, false},
		{responses, `{"model":"m1","tools":[],"input":[{"role":"user","content":"tools"}]}`, true},
		{responses, `{"model":"m1","input":[{"type":"additional_tools","tools":[{"type":"function","name":"f"}]}]}`, false},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			r.under(t)
			got := r.post(c.path, c.body)
			if e := r.next(Requested); e.Req.Aside != c.aside || e.Req.Refused {
				t.Errorf("%s: got aside %t, %d %s, want %t", c.body, e.Req.Aside, got.status, got.body, c.aside)
			}
		})
	}
}
