package agent

import (
	"strings"
	"testing"

	"abl/internal/outcome"

	"github.com/google/go-cmp/cmp"
)

func TestCodexSamples(t *testing.T) {
	trySamples(t, "codex", []sampled{
		{"fail-badjson", 1, `finished=false requests=-1 "codex stopped: stream disconnected before completion: stream closed before response.completed"`, ""},
		{"fail-e400", 1, `finished=false requests=-1 "codex stopped: {\"error\":{\"message\":\"stub says 400\",\"type\":\"server_error\",\"code\":null,\"param\":null}}"`, ""},
		{"fail-e401", 1, `finished=false requests=-1 "codex stopped: unexpected status 401 Unauthorized: stub says 401, url: http://127.0.0.1:9100/s/e401:xf-e401/v1/responses"`, outcome.Refused},
		{"fail-e401_after", 1, `finished=false requests=-1 "codex stopped: unexpected status 401 Unauthorized: stub says 401, url: http://127.0.0.1:9100/s/e401_after:xf-e401_after/v1/responses"`, outcome.Refused},
		{"fail-e403", 1, `finished=false requests=-1 "codex stopped: unexpected status 403 Forbidden: stub says 403, url: http://127.0.0.1:9100/s/e403:xf-e403/v1/responses"`, outcome.Refused},
		{"fail-e404", 1, `finished=false requests=-1 "codex stopped: unexpected status 404 Not Found: stub says 404, url: http://127.0.0.1:9100/s/e404:xf-e404/v1/responses"`, ""},
		{"fail-e429", 1, `finished=false requests=-1 "codex stopped: exceeded retry limit, last status: 429 Too Many Requests"`, outcome.RateLimited},
		{"fail-e429_ra30", 1, `finished=false requests=-1 "codex stopped: exceeded retry limit, last status: 429 Too Many Requests"`, outcome.RateLimited},
		{"fail-e429x2", 1, `finished=false requests=-1 "codex stopped: exceeded retry limit, last status: 429 Too Many Requests"`, outcome.RateLimited},
		{"fail-e500", 1, `finished=false requests=-1 "codex stopped: We’re currently experiencing high demand, which may cause temporary errors"`, outcome.Unavailable},
		{"fail-e500_after", 1, `finished=false requests=-1 "codex stopped: We’re currently experiencing high demand, which may cause temporary errors"`, outcome.Unavailable},
		{"fail-empty", 1, `finished=false requests=-1 "codex stopped: stream disconnected before completion: stream closed before response.completed"`, ""},
		{"fail-failedevent", 1, `finished=false requests=-1 "codex stopped: stream disconnected before completion: stub failed event"`, ""},
		{"fail-hang", 124, `finished=false requests=-1 "codex ended without a result record, with exit code 124"`, ""},
		{"fail-malformed", 1, `finished=false requests=-1 "codex stopped: stream disconnected before completion: stream closed before response.completed"`, ""},
		{"fail-nofinish", 1, `finished=false requests=-1 "codex stopped: stream disconnected before completion: stream closed before response.completed"`, ""},
		{"fail-refused", 124, `finished=false requests=-1 "codex ended without a result record, with exit code 124; its last message was: Reconnecting... waiting for network (Connection failed: error sending request)"`, outcome.Network},
		{"fail-reset", 1, `finished=false requests=-1 "codex stopped: stream disconnected before completion: error sending request"`, outcome.Network},
		{"fail-truncated", 1, `finished=false requests=-1 "codex stopped: stream disconnected before completion: Transport error: network error: error decoding response body"`, outcome.Network},
		{"ok-json", 0, `finished=true requests=-1 | unknown in=6000 out=18 cached=600 thoughts=42 tool=- total=6060`, ""},
	})
}

func TestCodexFollows(t *testing.T) {
	actions, session, said := follow(t, codex, "ok-json")
	want := []string{`shell printf 'hello from stub\n' > hello.txt`, "shell echo SHELLOK; id; pwd; env | cut -d= -f1 | sort | tr …", "All done: wrote hello.txt and ran a command."}
	if diff := cmp.Diff(want, actions); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if session != "01a1fc60-343b-7310-92e9-841719f09538" || said != "All done: wrote hello.txt and ran a command." {
		t.Errorf("session and last message: got %q, %q, want %q, %q",
			session, said, "01a1fc60-343b-7310-92e9-841719f09538", want[2])
	}
}

func TestCodexLines(t *testing.T) {
	const used = `{"type":"item.completed","item":{"type":"file_change","changes":[{"path":"/workspace/src/a"}]}}`
	const good = `{"type":"turn.completed","usage":{"input_tokens":9,"cached_input_tokens":2,"output_tokens":4,"reasoning_output_tokens":3}}`
	row := " | m in=9 out=1 cached=2 thoughts=3 tool=- total=13"
	failed := func(words string) string { return `{"type":"turn.failed","error":{"message":"` + words + `"}}` }
	for _, tt := range []struct {
		name  string
		lines []string
		cut   bool
		want  string
		is    outcome.Outcome
	}{
		{"noise around it", []string{"", "{", "[]", `{"type":7}`, `{"type":"item.completed","item":[]}`, used, good, "\x00\xff"}, false, "finished=true requests=-1" + row, ""},
		{"no tool", []string{`{"type":"item.completed","item":{"type":"agent_message","text":"no"}}`, good}, false,
			`finished=false requests=-1 "codex ended without using a tool, so it did not work on its task"` + row, outcome.Nothing},
		{"no figures", []string{used, `{"type":"turn.completed"}`}, false, `finished=false requests=-1 "codex ended without a model request that used a token"`, outcome.Nothing},
		{"cut", []string{good}, true, `finished=false requests=-1 "codex ended without a readable result record: a line was too long"`, ""},
		{"the last result counts, with the figures before it", []string{used, good, failed("x\\u001b[2J")}, false,
			`finished=false requests=-1 "codex stopped: x [2J"` + row, ""},
		{"too long", []string{failed("Input exceeds the maximum length of 1048576 characters.")}, false, `finished=false requests=-1 "codex stopped: Input exceeds the maximum length of 1048576 characters"`, outcome.TooLarge},
		{"quota", []string{failed("insufficient_quota")}, false, `finished=false requests=-1 "codex stopped: insufficient_quota"`, outcome.Quota},
		{"bad gateway", []string{failed("unexpected status 502 Bad Gateway")}, false, `finished=false requests=-1 "codex stopped: unexpected status 502 Bad Gateway"`, outcome.Unavailable},
		{"an invalid status", []string{failed("the status of things")}, false, `finished=false requests=-1 "codex stopped: the status of things"`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) { tryLines(t, codex, tt.lines, tt.cut, tt.want, tt.is) })
	}
}

func TestCodexCommandShown(t *testing.T) {
	for given, want := range map[string]string{
		`/bin/bash -lc "echo \"a\""`: `echo "a"`,
		`/bin/bash -lc 'cat x'`:      `cat x`,
		`/bin/bash -lc ls`:           `ls`,
		`/usr/bin/bash -lc "ls -a"`:  `ls -a`,
		`bash a -lc b`:               `bash a -lc b`,
		`zsh -c ls`:                  `zsh -c ls`,
	} {
		if got := withoutShell(given); got != want {
			t.Errorf("%s: got %s, want %s", given, got, want)
		}
	}
	if cmd, err := codex.Command(Call{}); err != nil || !strings.Contains(strings.Join(cmd.Argv, " "), "project_doc_max_bytes=0") {
		t.Errorf("command: got %v, error %v, want one with project_doc_max_bytes=0", cmd.Argv, err)
	}
}
