package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"abl/internal/outcome"
)

// paths are the paths of each API below the call's.
var paths = map[string]string{
	"gemini": "/v1beta/models/m:streamGenerateContent", "anthropic": "/v1/messages",
	"openai-responses": "/v1/responses", "openai-chat": "/v1/chat/completions",
}

// gatewayBefore returns a gateway for all four APIs, and the number of requests to their provider.
func gatewayBefore(t *testing.T) (*started, *int) {
	t.Helper()
	asked := 0
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { asked++ }))
	t.Cleanup(provider.Close)
	return launch(t, provider.URL), &asked
}

// TestRequestsOfTheCLIsPass replays requests of the real CLIs, stored without texts.
func TestRequestsOfTheCLIsPass(t *testing.T) {
	s, asked := gatewayBefore(t)
	all, err := filepath.Glob("testdata/requests/*.json")
	if err != nil || len(all) < 10 {
		t.Fatal(all, err)
	}
	for _, file := range all {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		api, _, _ := strings.Cut(filepath.Base(file), ".")
		if status, words := s.ask(t, "/c1/"+api+paths[api], string(body)); status != http.StatusOK {
			t.Errorf("%s: got status %d with %s, want %d", file, status, words, http.StatusOK)
		}
		s.line(t)
	}
	if *asked != len(all) {
		t.Errorf("requests to the provider: got %d, want %d", *asked, len(all))
	}
}

// TestRequestsBeyondTheModelAreRefused checks that no API allows other models, tools that the provider
// runs, stored prompts, and settings that raise the price. The refusal names the field.
func TestRequestsBeyondTheModelAreRefused(t *testing.T) {
	const field, tool = "the field ", "the tool "
	s, asked := gatewayBefore(t)
	for _, c := range []struct{ api, body, says string }{
		{"gemini", `{"cachedContent":"cachedContents/x"}`, field + `"cachedContent"`},
		{"gemini", `{"model":"models/m9","contents":[]}`, field + `"model"`},
		{"gemini", `{"serviceTier":"priority"}`, field + `"serviceTier"`},
		{"gemini", `{"contents":[],"Tools":[{"google_search":{}}]}`, field + `"Tools"`},
		{"gemini", `{"tools":[{"functionDeclarations":[],"urlContext":{}}]}`, tool + `"urlContext"`},
		{"gemini", `{"tools":[{"computerUse":{}}]}`, tool + `"computerUse"`},
		{"anthropic", `{"model":"m9"}`, `the model "m9"`},
		{"anthropic", `{"model":"m","container":{"skills":[{"type":"anthropic","skill_id":"xlsx"}]}}`, field + `"container"`},
		{"anthropic", `{"model":"m","mcp_servers":[{"url":"https://evil.example"}]}`, field + `"mcp_servers"`},
		{"anthropic", `{"model":"m","fallbacks":[{"model":"m9"}]}`, field + `"fallbacks"`},
		{"anthropic", `{"model":"m","inference_geo":"us"}`, field + `"inference_geo"`},
		{"anthropic", `{"model":"m","speed":"fast"}`, field + `"speed"`},
		{"anthropic", `{"model":"m","tools":[{"type":"web_fetch_20250910"}]}`, tool + `"web_fetch_20250910"`},
		{"anthropic", `{"model":"m","tools":[{"type":"code_execution_20250825"}]}`, tool + `"code_execution_20250825"`},
		{"anthropic", `{"model":"m","messages":[{"role":"system","content":[{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"type":"web_search_20250305"}}}]}]}`, tool + `"web_search_20250305"`},
		{"openai-responses", `{"model":"m","previous_response_id":"resp_1"}`, field + `"previous_response_id"`},
		{"openai-responses", `{"model":"m","prompt":{"id":"pmpt_1"}}`, field + `"prompt"`},
		{"openai-responses", `{"model":"m","conversation":"conv_1"}`, field + `"conversation"`},
		{"openai-responses", `{"model":"m","background":true}`, field + `"background"`},
		{"openai-responses", `{"model":"m","store":true}`, field + `"store"`},
		{"openai-responses", `{"model":"m","service_tier":"priority"}`, field + `"service_tier"`},
		{"openai-responses", `{"model":"m","input":[{"type":"item_reference","id":"rs_1"}]}`, tool + `"item_reference"`},
		{"openai-responses", `{"model":"m","tools":[{"type":"shell","environment":{"type":"container_auto"}}]}`, tool + `"shell"`},
		{"openai-responses", `{"model":"m","tools":[{"type":"mcp","server_url":"x"}]}`, tool + `"mcp"`},
		{"openai-responses", `{"model":"m","tools":[{"type":"a_tool_of_tomorrow"}]}`, tool + `"a_tool_of_tomorrow"`},
		{"openai-responses", `{"model":"m","input":[{"type":"additional_tools","tools":[{"type":"namespace","tools":[{"type":"web_search"}]}]}]}`, tool + `"web_search"`},
		{"openai-chat", `{"model":"m","models":["m9"]}`, field + `"models"`},
		{"openai-chat", `{"model":"m","route":"fallback"}`, field + `"route"`},
		{"openai-chat", `{"model":"m","plugins":[{"id":"web"}]}`, field + `"plugins"`},
		{"openai-chat", `{"model":"m","web_search_options":{}}`, field + `"web_search_options"`},
		{"openai-chat", `{"model":"m","modalities":["audio"]}`, field + `"modalities"`},
		{"openai-chat", `{"model":"m","tools":[{"type":"web_search"}]}`, tool + `"web_search"`},
		{"openai-chat", `{"model":"m","model":"m9"}`, field + `"model" twice`},
		{"openai-chat", `{"model":"m","MODEL":"m9"}`, field + `"MODEL"`},
	} {
		status, words := s.ask(t, "/c1/"+c.api+paths[c.api], c.body)
		says := strings.ReplaceAll(c.says, `"`, `\"`)
		if status != http.StatusForbidden && status != http.StatusBadRequest || !strings.Contains(words, "abl's gateway refuses") || !strings.Contains(words, says) {
			t.Errorf("%s %s: got status %d with %s, want a refusal with %s", c.api, c.body, status, words, says)
		}
		if e := s.line(t); !e.Req.Refused || !strings.Contains(e.Reason, c.says) {
			t.Errorf("%s %s: got the logged reason %q, want a refusal with %q", c.api, c.body, e.Reason, c.says)
		}
	}
	if *asked != 0 {
		t.Errorf("requests that reached the provider: got %d, want none", *asked)
	}
}

// TestNoUseInAskingAgain checks that after a response with a wait of hours the gateway refuses further
// requests, on which every CLI ends. A short wait is passed on unchanged.
func TestNoUseInAskingAgain(t *testing.T) {
	for _, c := range []struct {
		name, after, body string
		status            int
		trouble           outcome.Outcome
		asked             int
	}{
		{"three hours", "10800", `{"error":{"message":"come back later"}}`, 429, "quota", 1},
		{"three hours of too much load", "10800", `{"error":{"message":"overloaded"}}`, 503, "away", 1},
		{"no such model", "", `{"error":{"message":"no model m"}}`, 404, "model", 1},
		{"the key", "", `{"error":{"message":"no such key: ` + canary + `"}}`, 401, outcome.Refused, 1},
		{"half a minute", "30", `{"error":{"message":"slow down"}}`, 429, "rate", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			asked := 0
			provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				asked++
				w.Header().Set("Retry-After", c.after)
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}))
			defer provider.Close()
			s := launch(t, provider.URL)
			for n := range 3 {
				status, header, words := s.asks(t, "/c1/openai-responses/v1/responses", `{"model":"m"}`)
				e := s.line(t)
				if strings.Contains(words, canary) {
					t.Errorf("response: got %s, want one without the key", words)
				}
				if c.asked > 1 {
					if status != c.status || header.Get("Retry-After") != c.after || words != c.body {
						t.Errorf("request %d: got %d %v %s, want %d, Retry-After %q and %s",
							n+1, status, header, words, c.status, c.after, c.body)
					}
					continue
				}
				if status != http.StatusForbidden || header.Get("Retry-After") != "" || !strings.Contains(words, fmt.Sprintf("the provider responds %d: ", c.status)) {
					t.Errorf("request %d: got %d %v %s, want %d, no Retry-After and the status %d of the provider",
						n+1, status, header, words, http.StatusForbidden, c.status)
				}
				if e.Req.Held != (n > 0) || n == 0 && (e.Req.Status != c.status || e.Req.Trouble != c.trouble || e.Req.RetryMS > 0 != (c.after != "")) {
					t.Errorf("line %d: got %+v, want held %t, and in the first line the status %d and %q",
						n+1, e.Req, n > 0, c.status, c.trouble)
				}
			}
			if asked != c.asked {
				t.Errorf("requests to the provider: got %d, want %d", asked, c.asked)
			}
		})
	}
}
