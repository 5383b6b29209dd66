package agent

import (
	"strings"
	"testing"

	"abl/internal/outcome"

	"github.com/google/go-cmp/cmp"
)

func TestClaudeSamples(t *testing.T) {
	trySamples(t, "claude", []sampled{
		{"fail-badjson", 1, `finished=false requests=-1 "claude stopped: API Error: API returned an empty or malformed response (HTTP 200) — check for a proxy or gateway intercepting the request. Response: content-type event-stream, body is an event stream (the non-streaming request was answered with a stream), 41 bytes, request-id absent, intermediary headers transfer-encoding. This was the non-streaming retry of streaming request (no Anthropic request-id), which fai…"`, ""},
		{"fail-e400", 1, `finished=false requests=-1 "claude stopped: API Error: 400 stub says 400"`, ""},
		{"fail-e401", 1, `finished=false requests=-1 "claude stopped: Failed to authenticate. API Error: 401 stub says 401"`, outcome.Refused},
		{"fail-e403", 1, `finished=false requests=-1 "claude stopped: Failed to authenticate. API Error: 403 stub says 403"`, outcome.Refused},
		{"fail-e404", 1, `finished=false requests=-1 "claude stopped: There's an issue with the selected model (claude-sonnet-4-5). It may not exist or you may not have access to it. Run --model to pick a different model"`, ""},
		{"fail-e429", 1, `finished=false requests=-1 "claude stopped: API Error: Request rejected (429) · stub says 429"`, outcome.RateLimited},
		{"fail-e429_ra30", 1, `finished=false requests=-1 "claude stopped: API Error: Request rejected (429) · stub says 429"`, outcome.RateLimited},
		{"fail-e429x2", 0, `finished=true requests=-1 | claude-sonnet-4-5 in=6618 out=60 cached=600 thoughts=0 tool=- total=6678`, ""},
		{"fail-e500", 1, `finished=false requests=-1 "claude stopped: API Error: 500 stub says 500. This is a server-side issue, usually temporary — try again in a moment. If it persists, check your inference gateway (127.0.0.1:9100)"`, outcome.Unavailable},
		{"fail-e500_after", 1, `finished=false requests=-1 "claude stopped: API Error: 500 stub says 500. This is a server-side issue, usually temporary — try again in a moment. If it persists, check your inference gateway (127.0.0.1:9100)" | claude-sonnet-4-5 in=1103 out=10 cached=100 thoughts=0 tool=- total=1113`, outcome.Unavailable},
		{"fail-e529", 1, `finished=false requests=-1 "claude stopped: API Error: 529 stub says 529. This is a server-side issue, usually temporary — try again in a moment. If it persists, check your inference gateway (127.0.0.1:9100)"`, outcome.Unavailable},
		{"fail-empty", 1, `finished=false requests=-1 "claude stopped: API Error: API returned an empty or malformed response (HTTP 200) — check for a proxy or gateway intercepting the request. Response: content-type event-stream, empty body, 0 bytes, request-id absent, intermediary headers transfer-encoding. This was the non-streaming retry of streaming request (no Anthropic request-id), which failed with: no_events, StreamNoEventsError; 0 stream events received"`, ""},
		{"fail-malformed", 1, `finished=false requests=-1 "claude stopped: API Error: API returned an empty or malformed response (HTTP 200) — check for a proxy or gateway intercepting the request. Response: content-type html, body is an HTML page, 40 bytes, request-id absent, intermediary headers transfer-encoding. This was the non-streaming retry of streaming request (no Anthropic request-id), which failed with: no_events, StreamNoEventsError; 0 stream events received"`, ""},
		{"fail-maxbudget", 1, `finished=false requests=-1 "claude stopped: error_max_budget_usd: Reached maximum budget ($0.02)" | claude-sonnet-4-5 in=11030 out=100 cached=1000 thoughts=0 tool=- total=11130`, ""},
		{"fail-maxtok", 1, `finished=false requests=-1 "claude stopped: API Error: Claude's response exceeded the 32000 output token maximum. To configure this behavior, set the CLAUDE_CODE_MAX_OUTPUT_TOKENS environment variable" | claude-sonnet-4-5 in=16545 out=150 cached=1500 thoughts=0 tool=- total=16695`, ""},
		{"fail-maxturns", 1, `finished=false requests=-1 "claude stopped: error_max_turns: Reached maximum number of turns (3)" | claude-sonnet-4-5 in=6618 out=60 cached=600 thoughts=0 tool=- total=6678`, ""},
		{"fail-noauth", 1, `finished=false requests=-1 "claude stopped: Not logged in · Please run /login"`, outcome.Refused},
		{"fail-nofinish", 0, `finished=true requests=-1 | claude-sonnet-4-5 in=19854 out=66 cached=1800 thoughts=0 tool=- total=19920`, ""},
		{"fail-refused", 1, `finished=false requests=-1 "claude stopped: API Error: Connection refused — a firewall or proxy may be blocking it (ECONNREFUSED)"`, outcome.Network},
		{"fail-reset", 1, `finished=false requests=-1 "claude stopped: API Error: Connection dropped (ECONNRESET). Check the gateway set in ANTHROPIC_BASE_URL, then try again"`, outcome.Network},
		{"fail-sigint-during-tool", 0, `finished=false requests=-1 "claude stopped: error_during_execution: [ede_diagnostic] result_type=user last_content_type=n/a stop_reason=tool_use" | claude-sonnet-4-5 in=1103 out=10 cached=100 thoughts=0 tool=- total=1113`, ""},
		{"fail-truncated", 0, `finished=true requests=-1 | claude-sonnet-4-5 in=46326 out=117 cached=4200 thoughts=0 tool=- total=46443`, ""},
		{"", 124, `finished=false requests=-1 "claude ended without a result record, with exit code 124"`, ""}, // a silent server, ended from outside
		{"", 143, `finished=false requests=-1 "claude ended without a result record, with exit code 143"`, ""}, // SIGTERM
		{"ok-json", 0, `finished=true requests=-1 | claude-sonnet-4-5 in=6618 out=60 cached=600 thoughts=0 tool=- total=6678`, ""},
		{"ok-streamjson", 0, `finished=true requests=-1 | claude-sonnet-4-5 in=6618 out=60 cached=600 thoughts=0 tool=- total=6678`, ""},
	})
}

func TestClaudeFollows(t *testing.T) {
	actions, session, said := follow(t, claude, "ok-streamjson")
	want := []string{"Write /description/hello.txt", `Bash echo SHELLOK; id; pwd; env | cut -d= -f1 | sort | tr "…`, "All done: wrote hello.txt and ran a command."}
	if diff := cmp.Diff(want, actions); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if session != "308b4b61-e35a-40fd-97ca-c1d55f2a4ade" || said != "All done: wrote hello.txt and ran a command." {
		t.Errorf("session and last message: got %q, %q, want %q, %q",
			session, said, "308b4b61-e35a-40fd-97ca-c1d55f2a4ade", want[2])
	}
}

func TestClaudeLines(t *testing.T) {
	const begin = `{"type":"system","subtype":"init","session_id":"s"}`
	const used = `{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Bash","input":{"command":"ls"}}]}}`
	good := `{"type":"result","subtype":"success","is_error":false,"modelUsage":{"m":{"inputTokens":5,"outputTokens":4,"cacheReadInputTokens":2,"cacheCreationInputTokens":1,"thinkingTokens":3}}}`
	row := " | m in=8 out=1 cached=2 thoughts=3 tool=- total=12"
	failed := func(words, status string) string {
		return `{"type":"result","subtype":"success","is_error":true,"api_error_status":` + status + `,"result":"` + words + `"}`
	}
	for _, tt := range []struct {
		name  string
		lines []string
		cut   bool
		want  string
		is    outcome.Outcome
	}{
		{"noise around it", []string{"", "{", "[]", "null", `{"type":7}`, begin, used, good, "\x00\xff"}, false, "finished=true requests=-1" + row, ""},
		{"no tool", []string{begin, good}, false, `finished=false requests=-1 "claude ended without using a tool, so it did not work on its task"` + row, outcome.Nothing},
		{"no model", []string{begin, used, `{"type":"result","subtype":"success","modelUsage":{}}`}, false, `finished=false requests=-1 "claude ended without a model request that used a token"`, outcome.Nothing},
		{"invalid figures", []string{begin, used, strings.Replace(good, ":5", ":-5", 1)}, false,
			`finished=false requests=-1 "claude ended without a model request that used a token" | m in=- out=1 cached=2 thoughts=3 tool=- total=-`, outcome.Nothing},
		{"cut", []string{good}, true, `finished=false requests=-1 "claude ended without a readable result record: a line was too long"`, ""},
		{"no word of success", []string{begin, used, strings.Replace(good, `"success"`, `"paused\u001b[2J"`, 1)}, false, `finished=false requests=-1 "claude stopped: paused [2J"` + row, ""},
		{"too long", []string{failed("Prompt is too long", "400")}, false, `finished=false requests=-1 "claude stopped: Prompt is too long"`, outcome.TooLarge},
		{"payment required", []string{failed("Credit balance is too low", "400")}, false, `finished=false requests=-1 "claude stopped: Credit balance is too low"`, outcome.Quota},
	} {
		t.Run(tt.name, func(t *testing.T) { tryLines(t, claude, tt.lines, tt.cut, tt.want, tt.is) })
	}
}
