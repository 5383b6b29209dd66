package modelserver

import (
	"io"
	"net/http/httptest"
	"strings"
	"testing"
)

// Each request that an API's documentation forbids is refused with a message that names the
// mistake.
func TestForbiddenRequestsAreRefused(t *testing.T) {
	const claude, say, chat, gem = "/v1/messages", "/v1/responses", "/v1/chat/completions", "/v1beta/models/m:generateContent"
	const ask = `{"role":"user","content":"the mark"}`
	msgs := func(turns string) string { return `{"model":"m","max_tokens":99,"messages":[` + turns + `]}` }
	talks := func(model, more, turns string) string {
		return `{"model":"` + model + `",` + more + `"messages":[` + turns + `]}`
	}
	item := func(model, more, items string) string {
		return `{"model":"` + model + `",` + more + `"input":[` + items + `]}`
	}
	part := func(role, part string) string { return `{"role":"` + role + `","parts":[` + part + `]}` }
	for _, c := range []struct{ path, headers, body, want string }{
		{claude, "", msgs(ask), ""},
		{claude, "-anthropic-version", msgs(ask), "anthropic-version"},
		{claude, "-Content-Type", msgs(ask), "content type"},
		{claude, "", `{"model":"m","messages":[` + ask + `]}`, "max_tokens: Field required"},
		{claude, "", `{"model":"m","max_tokens":0,"messages":[` + ask + `]}`, "greater than or equal"},
		{claude, "", msgs(``), "messages: Field required"},
		{claude, "", `{"max_completion_tokens":9,` + msgs(ask)[1:], "max_completion_tokens: Extra inputs"},
		{claude, "", `{"context_management":{},` + msgs(ask)[1:], "context_management: Extra inputs"},
		{claude, "", `{"thinking":{"type":"enabled","budget_tokens":2000},` + msgs(ask)[1:], "thinking.budget_tokens"},
		{claude, "", msgs(useTurn), "unexpected role"},
		{claude, "", msgs(`{"role":"system","content":"x"}`), "unexpected role"},
		{claude, "", msgs(ask + "," + useTurn + "," + ask), "without `tool_result`"},
		{
			claude,
			"",
			msgs(ask + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"t9"}]}`),
			"unexpected `tool_use_id`",
		},
		{claude, "", msgs(`{"role":"user","content":[{"type":"text","text":""}]}`), "text content blocks must be non-empty"},
		{claude, "", msgs(`{"role":"user","content":""}`), "must have non-empty content"},
		{claude, "", msgs(`{"role":"user"}`), "must have non-empty content"},
		{chat, "", talks("gpt-4o", `"max_tokens":9,"temperature":0,`, ask), ""},
		{chat, "", talks("gpt-5.1", `"max_completion_tokens":9,`, ask), ""},
		{chat, "", talks("gpt-5.1", `"max_tokens":9,`, ask), "Use 'max_completion_tokens' instead"},
		{chat, "", talks("o3", `"max_tokens":9,`, ask), "Use 'max_completion_tokens' instead"},
		{chat, "", talks("gpt-6.1-sol", `"temperature":0,`, ask), "'temperature'"},
		{chat, "", talks("m", `"max_output_tokens":9,`, ask), "max_output_tokens"},
		{chat, "", talks("m", `"stream_options":{},`, ask), "stream_options"},
		{chat, "", talks("", ``, ask), "'model'"},
		{chat, "", talks("m", ``, `{"role":"human","content":"x"}`), "'human'"},
		{chat, "", talks("m", ``, ask+`,{"role":"tool","tool_call_id":"c1"}`), "must be a response"},
		{chat, "", talks("m", ``, ask+`,`+callsTurn+`,`+ask), "must be followed"},
		{chat, "", talks("m", ``, ask+`,`+callsTurn), "must be followed"},
		{say, "", item("gpt-5.1", `"max_output_tokens":64000,`, ask), ""},
		{say, "", item("gpt-5.1", `"max_tokens":9,`, ask), "'max_tokens'"},
		{say, "", item("gpt-5.1", `"temperature":0.2,`, ask), "'temperature'"},
		{say, "", item("m", `"max_output_tokens":1,`, ask), "max_output_tokens"},
		{say, "", item("m", ``, ``), "'input'"},
		{say, "", `{"model":"m","input":"the mark"}`, ""},
		{say, "", `{"model":"m","input":""}`, "'input'"},
		{say, "", item("m", `"stream_options":{},`, ask), "stream_options"},
		{say, "", item("m", `"messages":[],`, ask), "'messages'"},
		{say, "", item("m", ``, ask+`,`+callItem), "No tool output found"},
		{say, "", item("m", ``, ask+`,{"type":"function_call_output","call_id":"c1"}`), "No tool call found"},
		{gem, "", `{"contents":[` + part("user", `{"text":"the mark"}`) + `]}`, ""},
		{gem, "", `{"contents":[]}`, "contents is not specified"},
		{gem, "", `{"messages":[],"contents":[` + part("user", `{"text":"x"}`) + `]}`, "Unknown name"},
		{gem, "", `{"contents":[` + part("assistant", `{"text":"x"}`) + `]}`, "valid role"},
		{gem, "", `{"contents":[` + part("user", ``) + `]}`, "must not be empty"},
		{
			gem,
			"",
			`{"contents":[` + part("user", `{"text":"x"}`) + "," + part("model", `{"functionCall":{}}`) + "," + part("user", `{"text":"x"}`) + `]}`,
			"number of function response parts",
		},
		{gem, "", `{"contents":[` + part("model", `{"functionCall":{}}`) + `]}`, "immediately after"},
	} {
		t.Run(c.path+" "+c.want, func(t *testing.T) {
			req := httptest.NewRequestWithContext(t.Context(), "POST", c.path, strings.NewReader(c.body))
			for name, value := range map[string]string{
				"Authorization":     "Bearer k",
				"Content-Type":      "application/json",
				"anthropic-version": "2023-06-01",
			} {
				if c.headers != "-"+name {
					req.Header.Set(name, value)
				}
			}
			w := httptest.NewRecorder()
			s := &Server{Source: func(string) (Script, error) { return Script{Name: "x", Final: "Done."}, nil }, Log: io.Discard}
			s.ServeHTTP(w, req)
			got := w.Body.String()
			if c.want == "" && w.Code != 200 || c.want != "" && (w.Code != 400 || !strings.Contains(got, c.want)) {
				t.Errorf("%s %s: got %d %s, want %q", c.path, c.body, w.Code, got, c.want)
			}
		})
	}
}
