package model_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"abl/internal/outcome"
	"abl/internal/tokens"
	"abl/roles/model"

	"github.com/google/go-cmp/cmp"
)

// exchange is one response that a server plays, and what is to come of it.
type exchange struct {
	status int
	header map[string]string
	body   string
}

// server plays exchanges in turn, the last one for ever, and keeps the requests.
func server(t *testing.T, play ...exchange) (url string, requests *[]string) {
	t.Helper()
	requests = &[]string{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		key := r.Header.Get("X-Goog-Api-Key") + r.Header.Get("Authorization")
		*requests = append(*requests, fmt.Sprintf("%s %s %s %s", r.Method, r.URL, key, strings.TrimSpace(string(body))))
		x := play[min(len(*requests), len(play))-1]
		if x.status == 0 {
			panic(http.ErrAbortHandler)
		}
		for name, value := range x.header {
			w.Header().Set(name, value)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(x.status)
		io.WriteString(w, x.body)
	}))
	t.Cleanup(s.Close)
	return s.URL, requests
}

const (
	geminiOK = `{"candidates":[{"content":{"parts":[{"text":"let me see","thought":true},{"text":"^^^a\n"},{"text":"x\n^^^end\n"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":3,"thoughtsTokenCount":2,"totalTokenCount":12},"modelVersion":"gemini-2.5-pro-001"}`
	gptOK    = `{"model":"gpt-5-2025","choices":[{"finish_reason":"stop","message":{"role":"assistant","content":"hello"}}],"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12,"completion_tokens_details":{"reasoning_tokens":2},"prompt_tokens_details":{"cached_tokens":4}}}`
	key      = "key-of-the-test-1234"
)

// to is how a model at an address is asked, once.
func to(name, base string) model.Config {
	return model.Config{Provider: model.Known()[name], Key: key, Base: base, Patience: time.Minute}
}

// unkept takes what is sent, and keeps nothing.
func unkept([]byte) error { return nil }

// ask asks a model once and notes the pauses instead of waiting.
func ask(t *testing.T, name, base string, retries int) (a model.Answer, pauses []time.Duration, sent []string, err error) {
	t.Helper()
	conf := to(name, base)
	conf.Retries = retries
	conf.Wait = func(_ context.Context, _ error, d time.Duration) error { pauses = append(pauses, d); return nil }
	c, err := model.New(name, conf)
	if err != nil {
		t.Fatal(err)
	}
	a, err = c.Ask(t.Context(), "<do> \"it\"\n", func(body []byte) error {
		sent = append(sent, strings.TrimSpace(string(body)))
		return nil
	})
	return a, pauses, sent, err
}

func numbers(u tokens.Count) string {
	data, _ := json.Marshal([]*int64{u.Input, u.Candidates, u.Cached, u.Thoughts, u.Tool, u.Total})
	return string(data)
}

func TestOnTheWire(t *testing.T) {
	for _, c := range []struct{ name, body, request, text, called, tokens string }{
		{model.Gemini, geminiOK,
			`POST /v1beta/models/gemini-2.5-pro:generateContent ` + key + ` {"contents":[{"parts":[{"text":"\u003cdo\u003e \"it\"\n"}],"role":"user"}]}`,
			"^^^a\nx\n^^^end\n", "gemini-2.5-pro-001", "[7,3,null,2,null,12]"},
		{model.GPT, gptOK,
			`POST /v1/chat/completions Bearer ` + key + ` {"messages":[{"content":"\u003cdo\u003e \"it\"\n","role":"user"}],"model":"gpt-5"}`,
			"hello", "gpt-5-2025", "[7,3,4,2,null,12]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("GOOGLE_GENAI_USE_VERTEXAI", "1") // nobody's business here
			t.Setenv("OPENAI_ORG_ID", "other")
			url, requests := server(t, exchange{200, nil, c.body})
			a, _, sent, err := ask(t, c.name, url, 0)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{c.request}, *requests); diff != "" {
				t.Errorf("request (-want +got)\n%s", diff)
			}
			if _, body, _ := strings.Cut(c.request, " {"); len(sent) != 1 || sent[0] != "{"+body {
				t.Errorf("sent %q", sent)
			}
			if a.Text != c.text || a.Finish != model.Whole || a.Model != c.called || string(a.Body) != c.body || a.Tries != 1 {
				t.Errorf("got %+v", a)
			}
			if got := numbers(a.Usage); got != c.tokens {
				t.Errorf("tokens %s, want %s", got, c.tokens)
			}
		})
	}
}

func TestUnwholeAnswers(t *testing.T) {
	for _, c := range []struct {
		name, body, reason string
		finish             model.Finish
	}{
		{model.Gemini, `{"candidates":[{"content":{"parts":[{"text":"^^^a"}]},"finishReason":"MAX_TOKENS"}]}`, "MAX_TOKENS", model.Cut},
		{model.Gemini, `{"candidates":[{"content":{"parts":[{"text":"^^^a"}]}}]}`, "", model.Cut},
		{model.Gemini, `{"candidates":[{"content":{"parts":[{"text":"^^^a"}]},"finishReason":"SOMETHING_NEW"}]}`, "SOMETHING_NEW", model.Cut},
		{model.Gemini, `{"candidates":[{"finishReason":"SAFETY"}]}`, "SAFETY", model.Blocked},
		{model.Gemini, `{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"}}`, "PROHIBITED_CONTENT", model.Blocked},
		{model.GPT, `{"choices":[{"finish_reason":"length","message":{"content":"^^^a"}}]}`, "length", model.Cut},
		{model.GPT, `{"choices":[{"finish_reason":null,"message":{"content":"^^^a"}}]}`, "", model.Cut},
		{model.GPT, `{"choices":[{"finish_reason":"tool_calls","message":{"content":"x"}}]}`, "tool_calls", model.Cut},
		{model.GPT, `{"choices":[{"finish_reason":"content_filter","message":{"content":""}}]}`, "content_filter", model.Blocked},
		{model.GPT, `{"choices":[{"finish_reason":"stop","message":{"content":null,"refusal":"No."}}]}`, "refusal", model.Blocked},
	} {
		url, _ := server(t, exchange{200, nil, c.body})
		a, _, _, err := ask(t, c.name, url, 0)
		if (err != nil) != (c.finish == model.Blocked) || a.Finish != c.finish || a.Reason != c.reason || numbers(a.Usage) != "[null,null,null,null,null,null]" {
			t.Errorf("%s: %+v, %v", c.body, a, err)
		}
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
		{"429 and its header", model.Gemini, []exchange{{429, map[string]string{"Retry-After": "9"}, busy}, {200, nil, geminiOK}}, 2, "^^^a\nx\n^^^end\n", "[9s]"},
		{"429 and its body", model.Gemini, []exchange{{429, nil, busy}, {200, nil, geminiOK}}, 2, "^^^a\nx\n^^^end\n", "[7s]"},
		{"429 for too long", model.GPT, []exchange{{429, map[string]string{"Retry-After": "3600"}, busy}}, 4, "quota 1", "[]"},
		{"429 for ever", model.GPT, []exchange{{429, nil, `{"error":{"message":"slow"}}`}}, 3, "rate 4", "[1s 2s 4s]"},
		{"429, and nothing left to spend", model.GPT, []exchange{{429, nil, `{"error":{"code":"insufficient_quota","message":"pay"}}`}}, 3, "quota 1", "[]"},
		{"500 once", model.GPT, []exchange{{500, nil, empty}, {200, nil, gptOK}}, 1, "hello", "[1s]"},
		{"503", model.Gemini, []exchange{{503, nil, empty}}, 0, "away 1", "[]"},
		{"401", model.GPT, []exchange{{401, nil, `{"error":{"message":"bad key"}}`}}, 3, "refused 1", "[]"},
		{"400 about the key", model.Gemini, []exchange{{400, nil, `{"error":{"details":[{"reason":"API_KEY_INVALID"}]}}`}}, 3, "refused 1", "[]"},
		{"400", model.Gemini, []exchange{{400, nil, `{"error":{"message":"too long"}}`}}, 3, "failed 1", "[]"},
		{"404", model.GPT, []exchange{{404, nil, "not found"}}, 3, "failed 1", "[]"},
		{"no JSON", model.Gemini, []exchange{{200, nil, "<html>"}, {200, nil, geminiOK}}, 1, "^^^a\nx\n^^^end\n", "[1s]"},
		{"no JSON, GPT", model.GPT, []exchange{{200, nil, "<html>"}}, 0, "away 1", "[]"},
		{"no candidate", model.Gemini, []exchange{{200, nil, empty}}, 0, "away 1", "[]"},
		{"no choice", model.GPT, []exchange{{200, nil, empty}}, 0, "away 1", "[]"},
		{"redirection", model.Gemini, []exchange{{307, map[string]string{"Location": "/elsewhere"}, ""}}, 2, "failed 1", "[]"},
	} {
		t.Run(c.about, func(t *testing.T) {
			url, requests := server(t, c.play...)
			a, pauses, _, err := ask(t, c.name, url, c.retries)
			got := a.Text
			var e *model.Error
			if errors.As(err, &e) {
				got = fmt.Sprintf("%s %d", e.Kind, a.Tries)
				if string(a.Body) != c.play[min(a.Tries, len(c.play))-1].body || strings.Contains(err.Error(), key) {
					t.Errorf("body %q, error %v", a.Body, err)
				}
			}
			if got != c.want || fmt.Sprint(pauses) != c.pauses || len(*requests) != len(pauses)+1 {
				t.Errorf("got %q after %v and %d requests, want %q after %s: %v", got, pauses, len(*requests), c.want, c.pauses, err)
			}
		})
	}
}

// A try that the provider may have answered for money is not forgotten when a later one has
// an answer: its tokens count, or it says that some are unknown.
func TestEarlierTriesCount(t *testing.T) {
	const counted = `{"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":3,"totalTokenCount":10}}`
	for _, c := range []struct {
		name   string
		first  exchange
		tokens string
		lost   bool
	}{
		{"never answered", exchange{}, "[7,3,null,2,null,12]", true},
		{"answered with nonsense", exchange{200, nil, "<html>"}, "[7,3,null,2,null,12]", true},
		{"answered with nothing but tokens", exchange{200, nil, counted}, "[14,6,null,2,null,22]", false},
		{"given up by a server in front", exchange{524, nil, "<html>"}, "[7,3,null,2,null,12]", true},
		{"refused", exchange{503, nil, "{}"}, "[7,3,null,2,null,12]", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			url, _ := server(t, c.first, exchange{200, nil, geminiOK})
			a, _, _, err := ask(t, model.Gemini, url, 1)
			if got := numbers(a.Usage); err != nil || a.Tries != 2 || got != c.tokens || a.Lost != c.lost {
				t.Errorf("got %s, lost %t after %d tries: %v; want %s, %t", got, a.Lost, a.Tries, err, c.tokens, c.lost)
			}
		})
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	if a, _, _, err := ask(t, model.Gemini, gone.URL, 0); err == nil || a.Lost {
		t.Errorf("nobody was reached: lost %t, %v", a.Lost, err)
	}
}

// A server that takes the request and says nothing, one that is not there, one
// that breaks off.
func TestNobodyThere(t *testing.T) {
	done := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-done }))
	defer silent.Close()
	defer close(done)
	gone := httptest.NewServer(nil)
	gone.Close()
	half := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		io.WriteString(w, geminiOK[:50])
	}))
	defer half.Close()
	for _, base := range []string{silent.URL, gone.URL, half.URL} {
		for _, name := range model.Known().Names() {
			conf := to(name, base)
			conf.Patience = 50 * time.Millisecond
			c, err := model.New(name, conf)
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Ask(t.Context(), "x", unkept)
			var e *model.Error
			if !errors.As(err, &e) || e.Kind != outcome.Unavailable || base == silent.URL && !strings.Contains(err.Error(), "no answer within 50ms") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	c, err := model.New(model.Gemini, to(model.Gemini, silent.URL))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Ask(ctx, "x", func([]byte) error { cancel(os.ErrClosed); return nil }); !errors.Is(err, os.ErrClosed) {
		t.Errorf("after an interruption: %v", err)
	}
}

// A response without end is given up early, and is nobody's to try again.
func TestEndlessResponse(t *testing.T) {
	chunk := make([]byte, 1<<20)
	written := 0
	flood := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range 500 {
			n, err := w.Write(chunk)
			if written += n; err != nil {
				return
			}
		}
	}))
	_, pauses, _, err := ask(t, model.GPT, flood.URL, 3)
	flood.Close()
	var e *model.Error
	if !errors.As(err, &e) || e.Kind != outcome.Failed || len(pauses) > 0 || !strings.Contains(err.Error(), "larger than 64 MiB") || written > 200<<20 {
		t.Errorf("%v after %d bytes", err, written)
	}
}

// Nothing is sent before what is to be sent could be kept.
func TestNotKeptNotSent(t *testing.T) {
	for _, name := range model.Known().Names() {
		url, requests := server(t, exchange{200, nil, geminiOK})
		conf := to(name, url)
		conf.Retries = 3
		c, err := model.New(name, conf)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Ask(t.Context(), "x", func([]byte) error { return os.ErrPermission }); !errors.Is(err, os.ErrPermission) || len(*requests) > 0 {
			t.Errorf("%s: %v, %d requests", name, err, len(*requests))
		}
	}
}

func TestAddresses(t *testing.T) {
	for base, want := range map[string]string{
		"": "", "https://proxy.example/api": "", "http://127.0.0.1:8080": "", "http://localhost:1/v1/": "", "http://[::1]:1": "",
		"http://proxy.example": "unencrypted", "ftp://x": "plain address", "proxy": "plain address", "https://u:p@x": "plain address", "https://x?key=1": "plain address",
	} {
		_, err := model.New(model.GPT, to(model.GPT, base))
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "OPENAI_BASE_URL")) {
			t.Errorf("%q: %v", base, err)
		}
	}
	url, requests := server(t, exchange{200, nil, gptOK})
	if _, _, _, err := ask(t, model.GPT, url+"/proxy/v1/", 0); err != nil || !strings.HasPrefix((*requests)[0], "POST /proxy/v1/chat/completions ") {
		t.Errorf("%v, %q", err, *requests)
	}
}

// Nobody says where to go: the request goes to the provider's own address, in one
// piece, and the key stands in a header alone.
func TestOwnAddresses(t *testing.T) {
	for name, want := range map[string]string{
		model.Gemini: "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:generateContent",
		model.GPT:    "https://api.openai.com/v1/chat/completions",
	} {
		var got string
		conf := to(name, "")
		conf.Transport = round(func(r *http.Request) (*http.Response, error) {
			got = r.URL.String()
			return nil, os.ErrDeadlineExceeded
		})
		c, err := model.New(name, conf)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Ask(t.Context(), "x", unkept); err == nil || got != want {
			t.Errorf("%s: asked %q, %v", name, got, err)
		}
	}
}

type round func(*http.Request) (*http.Response, error)

func (f round) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestCatalog(t *testing.T) {
	c, err := model.Known().With("models", []byte("# newer ones\n\ngemini-3-pro  gemini\r\nft:gpt-5:me openai\n"))
	if want := []string{"ft:gpt-5:me", "gemini-2.5-pro", "gemini-3-pro", "gpt-5"}; err != nil || !slices.Equal(c.Names(), want) || c["gemini-3-pro"] != model.Google {
		t.Errorf("%v, %v", c, err)
	}
	for _, text := range []string{"gemini-3-pro\n", "x anthropic\n", "a b gemini\n", "../x gemini\n", "gemini\n"} {
		if _, err := model.Known().With("models", []byte("\n"+text)); err == nil || !strings.Contains(err.Error(), "models line 2: want the name of a model and its provider (gemini or openai)") {
			t.Errorf("%q: %v", text, err)
		}
	}
	url, requests := server(t, exchange{200, nil, gptOK})
	later, err := model.New("gpt-6", to(model.GPT, url))
	if err != nil {
		t.Fatal(err)
	}
	if a, err := later.Ask(t.Context(), "x", unkept); err != nil || a.Text != "hello" || !strings.Contains((*requests)[0], `"model":"gpt-6"`) {
		t.Errorf("%+v, %v, %q", a, err, *requests)
	}
}

// What a provider complains of is cut off somewhere, but not within the key.
func TestComplaintWithTheKey(t *testing.T) {
	for before := 375; before < 405; before += 5 {
		url, _ := server(t, exchange{400, nil, `{"error":{"message":"` + strings.Repeat("é", before/2) + key + `"}}`})
		_, _, _, err := ask(t, model.GPT, url, 0)
		if err == nil || strings.Contains(err.Error(), key[:4]) || !utf8.ValidString(err.Error()) {
			t.Errorf("%d: %v", before, err)
		}
	}
}
