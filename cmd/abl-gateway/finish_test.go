package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The log line of a request has the end of its response, with all four APIs, streamed or not.
func TestHowAnswersEnd(t *testing.T) {
	stream := func(events ...string) string { return "data: " + strings.Join(events, "\n\ndata: ") + "\n\n" }
	var answer string
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for piece := range strings.SplitAfterSeq(answer, "\n\n") { // one event per write
			_, _ = io.WriteString(w, piece)
			_ = http.NewResponseController(w).Flush()
		}
	}))
	defer provider.Close()
	s := launch(t, provider.URL)
	for _, c := range []struct{ api, answer, want string }{
		{"gemini", `{"candidates":[{"content":{"parts":[{"text":"\"finishReason\":\"SAFETY\""}]},"finishReason":"STOP"}]}`, "STOP"},
		{"gemini", `[{"candidates":[{"content":{}}]},{"candidates":[{"finishReason":"MAX_TOKENS"}]}]`, "MAX_TOKENS"},
		{"gemini", stream(`{"candidates":[{"content":{}}]}`, `{"candidates":[{"finishReason":"MAX_TOKENS"}]}`), "MAX_TOKENS"},
		{"gemini", stream(`{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"}}`), "PROHIBITED_CONTENT"},
		{"gemini", stream(`{"candidates":[{"content":{"parts":[{"functionCall":{"args":{"finishReason":"STOP"}}}]}}]}`), ""},
		{"anthropic", `{"content":[{"type":"tool_use","input":{"stop_reason":"x"}}],"stop_reason":"tool_use"}`, "tool_use"},
		{"anthropic", stream(`{"type":"message_start","message":{"stop_reason":null,"usage":{}}}`, `{"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":5}}`, `{"type":"message_stop"}`), "max_tokens"},
		{"anthropic", stream(`{"type":"message_start","message":{"stop_reason":null}}`), ""},
		{"openai-responses", `{"status":"completed","incomplete_details":null,"output":[{"status":"incomplete"}]}`, "completed"},
		{"openai-responses", `{"incomplete_details":{"reason":"content_filter"},"status":"incomplete"}`, "content_filter"},
		{"openai-responses", stream(`{"type":"response.created","response":{"status":"in_progress"}}`, `{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}`), "max_output_tokens"},
		{"openai-responses", stream(`{"type":"response.completed","response":{"status":"completed","output":[{"content":[{"type":"refusal","refusal":"I must not help with this, and here is at some length why"}]}]}}`), "refusal"},
		{"openai-responses", stream(`{"type":"response.created","response":{"status":"in_progress"}}`), ""},
		{"openai-chat", `{"choices":[{"message":{"content":"x","refusal":null},"finish_reason":"length"}]}`, "length"},
		{"openai-chat", stream(`{"choices":[{"delta":{},"finish_reason":null}]}`, `{"choices":[{"delta":{},"finish_reason":"content_filter"}]}`, `{"choices":[],"usage":{}}`, "[DONE]"), "content_filter"},
		{"openai-chat", stream(`{"choices":[{"delta":{"refusal":"I must not"}}]}`, `{"choices":[{"delta":{},"finish_reason":"stop"}]}`), "refusal"},
	} {
		answer = c.answer
		body := `{"model":"m"}`
		if c.api == "gemini" {
			body = `{"contents":[]}`
		}
		if status, _ := s.ask(t, "/c1/"+c.api+paths[c.api], body); status != http.StatusOK {
			t.Errorf("%s: got status %d, want %d", c.api, status, http.StatusOK)
		}
		if e := s.line(t); e.Req.Finish != c.want {
			t.Errorf("%s %s: got the finish reason %q, want %q", c.api, c.answer, e.Req.Finish, c.want)
		}
	}
}
