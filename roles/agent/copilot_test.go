package agent

import (
	"strings"
	"testing"

	"abl/internal/outcome"

	"github.com/google/go-cmp/cmp"
)

func TestCopilotSamples(t *testing.T) {
	trySamples(t, "copilot", []sampled{
		{"", 1, `finished=false requests=0 "copilot ended without a result record, with exit code 1"`, ""}, // nobody logged in, and no key
		{"fail-e400", 1, `finished=false requests=0 "copilot stopped: 400 stub says 400"`, ""},
		{"fail-e401", 1, `finished=false requests=0 "copilot stopped: Authentication failed with provider at http://127.0.0.1:9100/s/e401:pf-e401/v1 (HTTP 401). Check your COPILOT_PROVIDER_API_KEY, COPILOT_PROVIDER_API_KEY_COMMAND, or COPILOT_PROVIDER_BEARER_TOKEN"`, outcome.Refused},
		{"fail-e403", 1, `finished=false requests=0 "copilot stopped: Authentication failed with provider at http://127.0.0.1:9100/s/e403:pf-e403/v1 (HTTP 403). Check your COPILOT_PROVIDER_API_KEY, COPILOT_PROVIDER_API_KEY_COMMAND, or COPILOT_PROVIDER_BEARER_TOKEN"`, outcome.Refused},
		{"fail-e429", 1, `finished=false requests=0 "copilot stopped: Failed to get response from the AI model; retried 5 times (total retry wait time: 47.84 seconds) Last error: 429 stub says 429"`, outcome.RateLimited},
		{"fail-e429x2", 0, `finished=true requests=3`, ""},
		{"fail-e500", 1, `finished=false requests=0 "copilot stopped: Failed to get response from the AI model; retried 5 times (total retry wait time: 17.08 seconds) Last error: 500 stub says 500"`, outcome.Unavailable},
		{"fail-e500_after", 1, `finished=false requests=1 "copilot stopped: Failed to get response from the AI model; retried 5 times (total retry wait time: 14.67 seconds) Last error: 500 stub says 500"`, outcome.Unavailable},
		{"fail-empty", 1, `finished=false requests=0 "copilot stopped: Failed to get response from the AI model; retried 5 times (total retry wait time: 5.00 seconds) Last error: Failed to finalize chat-completions stream: request ended without sending any chunks"`, ""},
		{"fail-hang", 124, `finished=false requests=0 "copilot ended without a result record, with exit code 124"`, ""},
		{"fail-malformed", 1, `finished=false requests=0 "copilot stopped: Failed to get response from the AI model; retried 5 times (total retry wait time: 5.00 seconds) Last error: Failed to finalize chat-completions stream: request ended without sending any chunks"`, ""},
		{"fail-nofinish", 1, `finished=false requests=0 "copilot stopped: Failed to get response from the AI model; retried 5 times (total retry wait time: 5.00 seconds) Last error: Failed to finalize chat-completions stream: missing finish_reason for choice 0"`, ""},
		{"fail-refused", 1, `finished=false requests=0 "copilot stopped: Could not connect to local model provider at http://127.0.0.1:9199/v1. Check that the service is running and the port is correct"`, outcome.Network},
		{"fail-truncated", 1, `finished=false requests=0 "copilot stopped: Failed to get response from the AI model; retried 5 times (total retry wait time: 5.00 seconds) Last error: Failed native model HTTP request: error decoding response body: error reading a body from connection: unexpected EOF during chunk size line"`, outcome.Network},
		{"ok-json", 0, `finished=true requests=3`, ""},
		{"ok-usagefile", 0, `finished=true requests=3`, ""},
		{"ok-used", 0, `finished=true requests=3 | gpt-5.1 in=6000 out=18 cached=600 thoughts=42 tool=- total=6060`, ""},
		{"sigterm", 0, `finished=false requests=1 "copilot ended without a result record, with exit code 0"`, ""},
	})
}

func TestCopilotFollows(t *testing.T) {
	actions, session, said := follow(t, Copilot("openai-responses"), "ok-used")
	want := []string{"create SCRATCH", `bash echo SHELLOK; id; pwd; env | cut -d= -f1 | sort | tr "…`, "All done: wrote hello.txt and ran a command."}
	if diff := cmp.Diff(want, actions); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if session != "f4cd671a-51ac-4b4e-aa03-9826a031f2d0" || said != "All done: wrote hello.txt and ran a command." {
		t.Errorf("session and last message: got %q, %q, want %q, %q",
			session, said, "f4cd671a-51ac-4b4e-aa03-9826a031f2d0", want[2])
	}
}

func TestCopilotLines(t *testing.T) {
	const asked = `{"type":"model.call_finished","data":{"outcome":"success"}}`
	const used = `{"type":"tool.execution_start","data":{"toolName":"bash","arguments":{"command":"ls"}}}`
	const end = `{"type":"result","sessionId":"s","exitCode":0}`
	const usage = `{"modelMetrics":{"m":{"usage":{"inputTokens":9,"outputTokens":4,"cacheReadTokens":2,"reasoningTokens":3}}}}`
	const row = " | m in=9 out=1 cached=2 thoughts=3 tool=- total=13"
	failed := func(words, more string) string {
		return `{"type":"session.error","data":{"message":"` + words + `"` + more + `}}`
	}
	for _, tt := range []struct {
		name  string
		lines []string
		cut   bool
		want  string
		is    outcome.Outcome
	}{
		{"noise around it", []string{"", "{", "[]", `{"type":7}`, `{"type":"tool.execution_start","data":[]}`, asked, used, end, "", usage, "\x00"}, false, "finished=true requests=1" + row, ""},
		{"no tool", []string{asked, end, usage}, false, `finished=false requests=1 "copilot ended without using a tool, so it did not work on its task"` + row, outcome.Nothing},
		{"no tool and no tokens", []string{asked, end}, false, `finished=false requests=1 "copilot ended without using a tool, so it did not work on its task"`, outcome.Nothing},
		{"no model", []string{used, end, usage}, false, `finished=false requests=0 "copilot ended without a model request that used a token"` + row, outcome.Nothing},
		{"its own exit code", []string{asked, used, strings.Replace(end, "0", "1", 1), usage}, false, `finished=false requests=1 "copilot reports that it failed"` + row, ""},
		{"cut", []string{end}, true, `finished=false requests=0 "copilot ended without a readable result record: a line was too long"`, ""},
		{"too long", []string{failed("context_length_exceeded", "")}, false, `finished=false requests=0 "copilot stopped: context_length_exceeded"`, outcome.TooLarge},
		{"quota", []string{failed("429 insufficient_quota", `,"statusCode":429`)}, false, `finished=false requests=0 "copilot stopped: 429 insufficient_quota"`, outcome.Quota},
		{"steers a terminal", []string{failed(`x\u001b[2J`, "")}, false, `finished=false requests=0 "copilot stopped: x [2J"`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) { tryLines(t, Copilot("openai-responses"), tt.lines, tt.cut, tt.want, tt.is) })
	}
}

// OpenAI's newer models refuse the CLI's requests through the Chat API, so users must set it explicitly.
func TestCopilotTalksResponses(t *testing.T) {
	for api, want := range map[string]string{"openai-responses": "responses", "openai-chat": "completions"} {
		a := Copilot(api)
		cmd, err := a.Command(Call{})
		if got := cmd.Env["COPILOT_PROVIDER_WIRE_API"]; err != nil || got != want || a.Provider.API != api {
			t.Errorf("%s: got %q, want %q (%v)", api, got, want, err)
		}
	}
}
