package model_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"abl/internal/outcome"
	"abl/internal/usage"
	"abl/roles/model"

	"github.com/google/go-cmp/cmp"
)

// exchange is a response of a server, and the expected result.
type exchange struct {
	status int
	header map[string]string
	body   string
}

// server serves exchanges in turn, the last one forever, and records the requests.
func server(t *testing.T, play ...exchange) (url string, requests *[]string) {
	t.Helper()
	requests = &[]string{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		key := r.Header.Get("X-Goog-Api-Key") + r.Header.Get("X-Api-Key") + r.Header.Get("Authorization")
		*requests = append(*requests, fmt.Sprintf("%s %s %s %s", r.Method, r.URL, key, strings.TrimSpace(string(body))))
		x := play[min(len(*requests), len(play))-1]
		if x.status == 0 {
			panic(http.ErrAbortHandler)
		}
		for name, value := range x.header {
			w.Header().Set(name, value)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(x.status)
		io.WriteString(w, x.body)
	}))
	t.Cleanup(s.Close)
	return s.URL, requests
}

// events returns a stream of documents. A document that begins with its type has the name of that
// type.
func events(docs ...string) string {
	var b strings.Builder
	for _, doc := range docs {
		if named, is := strings.CutPrefix(doc, `{"type":"`); is {
			name, _, _ := strings.Cut(named, `"`)
			b.WriteString("event: " + name + "\n")
		}
		b.WriteString("data: " + doc + "\n\n")
	}
	return b.String()
}

// Models of the three providers.
const (
	flash  = "gemini-3.8-flash"
	sonnet = "claude-sonnet-5-5"
	sol    = "gpt-6.2-sol"
)

const key = "key-of-the-test-1234"

var (
	geminiOK = events(
		`{"candidates":[{"content":{"parts":[{"text":"let me see","thought":true},{"text":"^^^a\n"}]}}],"usageMetadata":{"promptTokenCount":7},"modelVersion":"gemini-3.8-flash-001"}`,
		`{"candidates":[{"content":{"parts":[{"text":"x\n^^^end\n"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":3,"thoughtsTokenCount":2,"totalTokenCount":12},"modelVersion":"gemini-3.8-flash-001"}`)
	claudeOK = events(
		`{"type":"message_start","message":{"model":"claude-sonnet-5-5-001","content":[],"usage":{"input_tokens":7,"output_tokens":1}}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"let me see"}}`,
		`{"type":"ping"}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"hel"}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"lo"}}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5}}`,
		`{"type":"message_stop"}`)
	gptOK = events(
		`{"type":"response.created","response":{"model":"gpt-6.2-sol-2026","status":"in_progress","error":null,"output":[]}}`,
		`{"type":"response.reasoning_summary_text.delta","delta":"let me see"}`,
		`{"type":"response.output_text.delta","delta":"hel"}`,
		`{"type":"response.output_text.delta","delta":"lo"}`,
		`{"type":"response.completed","response":{"model":"gpt-6.2-sol-2026","status":"completed","error":null,"output":[],"usage":{"input_tokens":7,"output_tokens":5,"total_tokens":12,"output_tokens_details":{"reasoning_tokens":2},"input_tokens_details":{"cached_tokens":4}}}}`)
	chatOK = events(
		`{"model":"gpt-6.2-sol-2026","choices":[{"index":0,"delta":{"role":"assistant","content":"hel"},"finish_reason":null}]}`,
		`{"model":"gpt-6.2-sol-2026","choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":"stop"}]}`,
		`{"model":"gpt-6.2-sol-2026","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12,"completion_tokens_details":{"reasoning_tokens":2},"prompt_tokens_details":{"cached_tokens":4}}}`,
		`[DONE]`)
)

// to returns the configuration for a model at an address, without retries. A model of the Chat API
// begins with "chat ".
func to(t *testing.T, name, base string) model.Config {
	t.Helper()
	of, err := model.Of(name, "models", []byte("chat openai-chat"))
	if err != nil || of.Name == "" {
		t.Fatalf("provider of %s: got %q, error %v, want one with a name", name, of.Name, err)
	}
	return model.Config{Provider: of, Key: key, Base: base, Patience: time.Minute}
}

// unkept accepts the request and does not record it.
func unkept([]byte) error { return nil }

// ask sends one question to a model and records the pauses instead of waiting.
func ask(t *testing.T, name, base string, retries int) (a model.Answer, pauses []time.Duration, sent []string, err error) {
	t.Helper()
	conf := to(t, name, base)
	conf.Retries = retries
	conf.Wait = func(_ context.Context, _ error, d time.Duration) error { pauses = append(pauses, d); return nil }
	c, err := model.New(name, conf)
	if err != nil {
		t.Fatal(err)
	}
	a, err = c.Ask(t.Context(), `"it"`, func(body []byte) error {
		sent = append(sent, strings.TrimSpace(string(body)))
		return nil
	})
	return a, pauses, sent, err
}

func numbers(u usage.Count) string {
	data, _ := json.Marshal([]*int64{u.Input, u.Candidates, u.Cached, u.Thoughts, u.Tool, u.Total})
	return string(data)
}

func TestOnTheWire(t *testing.T) {
	for _, c := range []struct{ name, body, request, text, called, tokens string }{
		{flash, geminiOK,
			`POST /v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse ` + key + ` {"contents":[{"parts":[{"text":"\"it\""}],"role":"user"}]}`,
			"^^^a\nx\n^^^end\n", "gemini-3.8-flash-001", "[7,3,null,2,null,12]"},
		{sonnet, claudeOK,
			`POST /v1/messages ` + key + ` {"max_tokens":32000,"messages":[{"content":"\"it\"","role":"user"}],"model":"claude-sonnet-5-5","stream":true}`,
			"hello", "claude-sonnet-5-5-001", "[7,5,null,null,null,12]"},
		{sol, gptOK,
			`POST /v1/responses Bearer ` + key + ` {"input":"\"it\"","model":"gpt-6.2-sol","store":false,"stream":true}`,
			"hello", "gpt-6.2-sol-2026", "[7,3,4,2,null,12]"},
		{"chat", chatOK,
			`POST /v1/chat/completions Bearer ` + key + ` {"messages":[{"content":"\"it\"","role":"user"}],"model":"chat","stream":true,"stream_options":{"include_usage":true}}`,
			"hello", "gpt-6.2-sol-2026", "[7,3,4,2,null,12]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, name := range []string{"GOOGLE_GENAI_USE_VERTEXAI", "OPENAI_ORG_ID", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS"} {
				t.Setenv(name, "1") // abl ignores it
			}
			url, requests := server(t, exchange{200, nil, c.body})
			a, _, sent, err := ask(t, c.name, url, 0)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{c.request}, *requests); diff != "" {
				t.Errorf("request (-want +got)\n%s", diff)
			}
			if _, body, _ := strings.Cut(c.request, " {"); len(sent) != 1 || sent[0] != "{"+body {
				t.Errorf("got %q sent, want %q", sent, "{"+body)
			}
			if a.Text != c.text || a.Finish != model.Whole || a.Model != c.called || string(a.Body) != c.body || a.Tries != 1 || a.Lost {
				t.Errorf("got %+v, want %q of %s, whole", a, c.text, c.called)
			}
			if got := numbers(a.Usage); got != c.tokens {
				t.Errorf("got tokens %s, want %s", got, c.tokens)
			}
		})
	}
}

// TestHeard checks that the length of the answer is reported while it arrives.
func TestHeard(t *testing.T) {
	for name, body := range map[string]string{flash: geminiOK, sonnet: claudeOK, sol: gptOK, "chat": chatOK} {
		t.Run(name, func(t *testing.T) {
			url, _ := server(t, exchange{200, nil, body})
			conf := to(t, name, url)
			var got []int
			conf.Heard = func(length int) { got = append(got, length) }
			c, err := model.New(name, conf)
			if err != nil {
				t.Fatal(err)
			}
			a, err := c.Ask(t.Context(), "x", unkept)
			got = slices.Compact(got)
			if err != nil || len(got) != 3 || got[0] != 0 || got[1] >= got[2] || got[2] != len(a.Text) {
				t.Errorf("got lengths %v of %q, %v; want 0, a part, and all", got, a.Text, err)
			}
		})
	}
}

func TestUnwholeAnswers(t *testing.T) {
	for _, c := range []struct {
		name, body, reason string
		finish             model.Finish
	}{
		{flash, `{"candidates":[{"content":{"parts":[{"text":"^^^a"}]},"finishReason":"MAX_TOKENS"}]}`, "MAX_TOKENS", model.Cut},
		{flash, `{"candidates":[{"content":{"parts":[{"text":"^^^a"}]},"finishReason":"SOMETHING_NEW"}]}`, "SOMETHING_NEW", model.Cut},
		{flash, `{"candidates":[{"finishReason":"SAFETY"}]}`, "SAFETY", model.Blocked},
		{flash, `{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"}}`, "PROHIBITED_CONTENT", model.Blocked},
		{sonnet, `{"type":"message_delta","delta":{"stop_reason":"max_tokens"}}`, "max_tokens", model.Cut},
		{sonnet, `{"type":"message_delta","delta":{"stop_reason":"refusal"}}`, "refusal", model.Blocked},
		{sol, `{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}`, "max_output_tokens", model.Cut},
		{sol, `{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"content_filter"}}}`, "content_filter", model.Blocked},
		{sol, `{"type":"response.completed","response":{"status":"completed","output":[{"content":[{"type":"refusal","refusal":"No."}]}]}}`, "refusal", model.Blocked},
		{"chat", `{"choices":[{"finish_reason":"length","delta":{"content":"^^^a"}}]}`, "length", model.Cut},
		{"chat", `{"choices":[{"finish_reason":"tool_calls","delta":{"content":"x"}}]}`, "tool_calls", model.Cut},
		{"chat", `{"choices":[{"finish_reason":"content_filter","delta":{"content":""}}]}`, "content_filter", model.Blocked},
		{"chat", `{"choices":[{"finish_reason":"stop","delta":{"content":null,"refusal":"No."}}]}`, "refusal", model.Blocked},
	} {
		t.Run(c.name+" "+c.reason, func(t *testing.T) {
			url, _ := server(t, exchange{200, nil, events(c.body)})
			a, _, _, err := ask(t, c.name, url, 0)
			if (err != nil) != (c.finish == model.Blocked) || a.Finish != c.finish || a.Reason != c.reason || numbers(a.Usage) != "[null,null,null,null,null,null]" {
				t.Errorf("got %+v, %v; want %s by %s", a, err, c.finish, c.reason)
			}
		})
	}
}

// TestServerWithoutResponses checks that the client switches to the Chat API for an OpenAI-compatible
// server without the Responses API.
func TestServerWithoutResponses(t *testing.T) {
	const missing = `{"error":{"message":"Not Found"}}`
	for _, c := range []struct {
		name   string
		play   []exchange
		want   string
		routes []string
	}{
		{"404", []exchange{{404, nil, missing}, {503, nil, "{}"}, {200, nil, chatOK}}, "hello", []string{"/v1/responses", "/v1/chat/completions", "/v1/chat/completions"}},
		{"405", []exchange{{405, nil, ""}, {200, nil, chatOK}}, "hello", []string{"/v1/responses", "/v1/chat/completions"}},
		{"no such model", []exchange{{404, nil, `{"error":{"code":"model_not_found"}}`}}, "model", []string{"/v1/responses"}},
		{"nothing there", []exchange{{404, nil, missing}}, "failed", []string{"/v1/responses", "/v1/chat/completions"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			url, requests := server(t, c.play...)
			a, _, _, err := ask(t, sol, url, 1)
			got := a.Text
			if e, is := errors.AsType[*model.Error](err); is {
				got = string(e.Kind)
			}
			var routes []string
			for _, r := range *requests {
				routes = append(routes, strings.Fields(r)[1])
			}
			if got != c.want || !slices.Equal(routes, c.routes) {
				t.Errorf("got %q by %q, want %q by %q: %v", got, routes, c.want, c.routes, err)
			}
		})
	}
}

func TestTrouble(t *testing.T) {
	const (
		busy  = `{"error":{"message":"slow down","details":[{"retryDelay":"7s"}]}}`
		empty = `{}`
	)
	for _, c := range []struct {
		about, name string
		play        []exchange
		retries     int
		want        string // kind and tries; or the text
		pauses      string
	}{
		{"429 and its header", flash, []exchange{{429, map[string]string{"Retry-After": "9"}, busy}, {200, nil, geminiOK}}, 2, "^^^a\nx\n^^^end\n", "[9s]"},
		{"429 and its body", flash, []exchange{{429, nil, busy}, {200, nil, geminiOK}}, 2, "^^^a\nx\n^^^end\n", "[7s]"},
		{"429 for too long", sol, []exchange{{429, map[string]string{"Retry-After": "3600"}, busy}}, 4, "quota 1", "[]"},
		{"429 for ever", sol, []exchange{{429, nil, `{"error":{"message":"slow"}}`}}, 3, "rate 4", "[1s 2s 4s]"},
		{"429, and nothing left to spend", sol, []exchange{{429, nil, `{"error":{"code":"insufficient_quota","message":"pay"}}`}}, 3, "quota 1", "[]"},
		{"500 once", sol, []exchange{{500, nil, empty}, {200, nil, gptOK}}, 1, "hello", "[1s]"},
		{"503", flash, []exchange{{503, nil, empty}}, 0, "away 1", "[]"},
		{"401", sol, []exchange{{401, nil, `{"error":{"message":"bad key"}}`}}, 3, "refused 1", "[]"},
		{"400 about the key", flash, []exchange{{400, nil, `{"error":{"details":[{"reason":"API_KEY_INVALID"}]}}`}}, 3, "refused 1", "[]"},
		{"400", flash, []exchange{{400, nil, `{"error":{"message":"too long"}}`}}, 3, "failed 1", "[]"},
		{"404", sonnet, []exchange{{404, nil, "not found"}}, 3, "failed 1", "[]"},
		{"no events", flash, []exchange{{200, nil, "<html>"}, {200, nil, geminiOK}}, 1, "^^^a\nx\n^^^end\n", "[1s]"},
		{"no events, GPT", sol, []exchange{{200, nil, "<html>"}}, 0, "away 1", "[]"},
		{"no events, Claude", sonnet, []exchange{{200, nil, empty}}, 0, "away 1", "[]"},
		{"a whole answer instead of events", "chat", []exchange{{200, nil, `{"choices":[{"finish_reason":"stop","message":{"content":"hello"}}]}`}}, 0, "away 1", "[]"},
		{"no end", flash, []exchange{{200, nil, events(`{"candidates":[{"content":{"parts":[{"text":"^^^a"}]}}]}`)}}, 0, "away 1", "[]"},
		{"a stream to be continued, Gemini", flash, []exchange{{200, nil, events(`{"candidates":[{"content":{"parts":[{"text":"^^^a"}]},"continuationToken":"eA=="}]}`)}}, 0, "away 1", "[]"},
		{"no end, Claude", sonnet, []exchange{{200, nil, claudeOK[:strings.Index(claudeOK, `data: {"type":"message_delta"`)]}}, 0, "away 1", "[]"},
		{"an error at the end", sonnet, []exchange{{200, nil, events(`{"type":"message_start","message":{}}`, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)}, {200, nil, claudeOK}}, 1, "hello", "[1s]"},
		{"an error at the end, GPT", sol, []exchange{{200, nil, events(`{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"oh"}}}`)}}, 0, "away 1", "[]"},
		{"no money, at the end", sol, []exchange{{200, nil, events(`{"type":"error","code":"insufficient_quota","message":"pay"}`)}}, 3, "quota 1", "[]"},
		{"529", sonnet, []exchange{{529, nil, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`}}, 0, "away 1", "[]"},
		{"redirection", flash, []exchange{{307, map[string]string{"Location": "/elsewhere"}, ""}}, 2, "failed 1", "[]"},
	} {
		t.Run(c.about, func(t *testing.T) {
			url, requests := server(t, c.play...)
			a, pauses, _, err := ask(t, c.name, url, c.retries)
			got := a.Text
			var e *model.Error
			if errors.As(err, &e) {
				got = fmt.Sprintf("%s %d", e.Kind, a.Tries)
				if string(a.Body) != c.play[min(a.Tries, len(c.play))-1].body || strings.Contains(err.Error(), key) {
					t.Errorf("error response: got body %q, error %v, want the server's body and no key", a.Body, err)
				}
			}
			if got != c.want || fmt.Sprint(pauses) != c.pauses || len(*requests) != len(pauses)+1 {
				t.Errorf("got %q after %v and %d requests, want %q after %s: %v", got, pauses, len(*requests), c.want, c.pauses, err)
			}
		})
	}
}

// TestEarlierTriesCount checks that a failed try that may have cost something counts after a later try
// succeeds: its tokens are added, or the usage is unknown.
func TestEarlierTriesCount(t *testing.T) {
	counted := events(`{"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":3,"totalTokenCount":10}}`)
	for _, c := range []struct {
		name   string
		first  exchange
		tokens string
		lost   bool
	}{
		{"never answered", exchange{}, "[7,3,null,2,null,12]", true},
		{"answered with nonsense", exchange{200, nil, "<html>"}, "[7,3,null,2,null,12]", true},
		{"answered with nothing but tokens", exchange{200, nil, counted}, "[7,3,null,2,null,12]", true},
		{"answered with an empty answer", exchange{200, nil, strings.ReplaceAll(geminiOK, "STOP", "ERROR")}, "[14,6,null,4,null,24]", false},
		{"given up by a server in front", exchange{524, nil, "<html>"}, "[7,3,null,2,null,12]", true},
		{"refused", exchange{503, nil, "{}"}, "[7,3,null,2,null,12]", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			url, _ := server(t, c.first, exchange{200, nil, geminiOK})
			a, _, _, err := ask(t, flash, url, 1)
			if got := numbers(a.Usage); err != nil || a.Tries != 2 || got != c.tokens || a.Lost != c.lost {
				t.Errorf("got %s, lost %t after %d tries: %v; want %s, %t", got, a.Lost, a.Tries, err, c.tokens, c.lost)
			}
		})
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	if a, _, _, err := ask(t, flash, gone.URL, 0); err == nil || a.Lost {
		t.Errorf("closed server: got lost %t, error %v, want false and an error", a.Lost, err)
	}
}

// TestNoServer checks a server that accepts the request and does not respond, an address without a
// server, and a server that closes the connection.
func TestNoServer(t *testing.T) {
	var logged bytes.Buffer
	log.SetOutput(&logged)
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
	done := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-done }))
	defer silent.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	half := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		io.WriteString(w, geminiOK[:50])
	}))
	defer half.Close()
	stuck := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.NewResponseController(w).Flush()
		<-done
	}))
	defer stuck.Close()
	defer close(done)
	why := map[string]string{silent.URL: "no answer within 50ms", gone.URL: "refused", half.URL: "unexpected EOF", stuck.URL: "no answer within 50ms"}
	for base, want := range why {
		for _, name := range []string{flash, sonnet, sol, "chat"} {
			conf := to(t, name, base)
			conf.Patience = 50 * time.Millisecond
			c, err := model.New(name, conf)
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Ask(t.Context(), "x", unkept)
			var e *model.Error
			if !errors.As(err, &e) || e.Kind != outcome.Unavailable || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q", name, err, want)
			}
		}
	}
	if logged.Len() > 0 {
		t.Errorf("log: got %q, want none", &logged)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	c, err := model.New(flash, to(t, flash, silent.URL))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Ask(ctx, "x", func([]byte) error { cancel(os.ErrClosed); return nil }); !errors.Is(err, os.ErrClosed) {
		t.Errorf("error of an interrupted call: got %v, want %v", err, os.ErrClosed)
	}
}

// TestEndlessResponse checks that a response without an end fails early and is not retried.
func TestEndlessResponse(t *testing.T) {
	chunk := bytes.Repeat([]byte("data: 1\n"), 1<<17)
	written := 0
	flood := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range 500 {
			n, err := w.Write(chunk)
			if written += n; err != nil {
				return
			}
		}
	}))
	_, pauses, _, err := ask(t, sol, flood.URL, 3)
	flood.Close()
	var e *model.Error
	if !errors.As(err, &e) || e.Kind != outcome.Failed || len(pauses) > 0 || !strings.Contains(err.Error(), "larger than 64 MiB") || written > 200<<20 {
		t.Errorf("endless response: got error %v after %d bytes and %d retries, want %s at 64 MiB and no retry",
			err, written, len(pauses), outcome.Failed)
	}
}

// TestNotKeptNotSent checks that no request is sent that could not be recorded.
func TestNotKeptNotSent(t *testing.T) {
	for _, name := range []string{flash, sonnet, sol, "chat"} {
		url, requests := server(t, exchange{200, nil, geminiOK})
		conf := to(t, name, url)
		conf.Retries = 3
		c, err := model.New(name, conf)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Ask(t.Context(), "x", func([]byte) error { return os.ErrPermission }); !errors.Is(err, os.ErrPermission) || len(*requests) > 0 {
			t.Errorf("%s: got error %v, %d requests, want %v, 0 requests", name, err, len(*requests), os.ErrPermission)
		}
	}
}

func TestAddresses(t *testing.T) {
	for base, want := range map[string]string{
		"": "", "https://proxy.example/api": "", "http://127.0.0.1:8080": "", "http://localhost:1/v1/": "", "http://[::1]:1": "",
		"http://proxy.example": "unencrypted", "ftp://x": "plain address", "proxy": "plain address", "https://u:p@x": "plain address", "https://x?key=1": "plain address",
	} {
		_, err := model.New(sol, to(t, sol, base))
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "OPENAI_BASE_URL")) {
			t.Errorf("error of the address %q: got %v, want %q", base, err, want)
		}
	}
	url, requests := server(t, exchange{200, nil, gptOK})
	if _, _, _, err := ask(t, sol, url+"/proxy/v1/", 0); err != nil || !strings.HasPrefix((*requests)[0], "POST /proxy/v1/responses ") {
		t.Errorf("request: got error %v, %q, want POST /proxy/v1/responses", err, *requests)
	}
}

// TestOwnAddresses checks that without another address the request goes to the provider's own, with
// the key only in a header.
func TestOwnAddresses(t *testing.T) {
	for name, want := range map[string]string{
		flash:  "https://generativelanguage.googleapis.com/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse",
		sonnet: "https://api.anthropic.com/v1/messages",
		sol:    "https://api.openai.com/v1/responses",
		"chat": "https://api.openai.com/v1/chat/completions",
	} {
		var got string
		conf := to(t, name, "")
		conf.Transport = round(func(r *http.Request) (*http.Response, error) {
			got = r.URL.String()
			return nil, os.ErrDeadlineExceeded
		})
		c, err := model.New(name, conf)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Ask(t.Context(), "x", unkept); err == nil || got != want {
			t.Errorf("%s: got address %q, error %v, want %q and an error", name, got, err, want)
		}
	}
}

type round func(*http.Request) (*http.Response, error)

func (f round) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestComplaintWithTheKey checks that the text of an error is cut, but not within the key.
func TestComplaintWithTheKey(t *testing.T) {
	for before := 375; before < 405; before += 5 {
		url, _ := server(t, exchange{400, nil, `{"error":{"message":"` + strings.Repeat("é", before/2) + key + `"}}`})
		_, _, _, err := ask(t, sol, url, 0)
		if err == nil || strings.Contains(err.Error(), key[:4]) || !utf8.ValidString(err.Error()) {
			t.Errorf("%d bytes before the key: got %v, want an error in UTF-8 without the key", before, err)
		}
	}
}
