package learn

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"abl/roles"
	"abl/roles/agent"
)

// What the real CLIs printed, as it is heard on the person's machine.
func TestHear(t *testing.T) {
	for _, c := range []struct {
		agent, sample string
		exit          int
		want          string
	}{
		{"claude", "ok-streamjson", 0, "done, says something, tokens known"},
		{"claude", "fail-e401", 1, "refused, says nothing, tokens unknown"},
		{"claude", "fail-e429", 1, "rate, says nothing, tokens unknown"},
		{"claude", "fail-truncated", 1, "failed, says nothing, tokens known"},
		{"codex", "ok-json", 0, "done, says something, tokens known"},
		{"codex", "fail-e500", 1, "away, says nothing, tokens unknown"},
		{"copilot", "ok-used", 0, "done, says something, tokens known"},
		{"copilot", "ok-json", 0, "done, says something, tokens unknown"},
		{"gemini", "ok-streamjson", 0, "done, says something, tokens known"},
		{"gemini", "fail-e401-streamjson", 1, "failed, says nothing, tokens known"},
	} {
		out, err := os.ReadFile(filepath.Join("../../../roles/agent/testdata", c.agent, c.sample))
		if err != nil {
			t.Fatal(err)
		}
		end := ended{Class: roles.Done, Exit: c.exit}
		if c.exit != 0 {
			end.Class = roles.Failed
		}
		h := hear(ofName(t, c.agent).reader(agent.Call{Model: "m"}), out, end)
		says, tokens := "something", "known"
		if strings.TrimSpace(h.text) == "" {
			says = "nothing"
		}
		if len(h.usage) == 0 || h.usage[0].Total == nil {
			tokens = "unknown"
		}
		if got := fmt.Sprintf("%s, says %s, tokens %s", h.end.Class, says, tokens); got != c.want {
			t.Errorf("%s, %s: %s, want %s (%s)", c.agent, c.sample, got, c.want, h.end.Reason)
		}
	}
}

// A CLI that prints no records is believed by its exit code, and its words are its
// answer; what abl itself did to one is not undone by what it had printed.
func TestHearWithoutRecords(t *testing.T) {
	h := hear(ofName(t, "claude").reader(agent.Call{Model: "m"}), []byte("LEARNING: Use a pool\n"), ended{Class: roles.Done})
	if h.text != "LEARNING: Use a pool\n" || h.end.Class != roles.Done || h.usage != nil {
		t.Errorf("%+v", h)
	}
	if h = hear(ofName(t, "codex").reader(agent.Call{Model: "m"}), []byte("no"), ended{Class: roles.Failed, Reason: "it ended with exit code 3", Exit: 3}); h.end.Reason != "it ended with exit code 3" {
		t.Errorf("%+v", h)
	}
	said := `{"type":"assistant","message":{"content":[{"type":"text","text":"half"}]}}` + "\n"
	if h = hear(ofName(t, "claude").reader(agent.Call{Model: "m"}), []byte(said), ended{Class: roles.Timeout, Reason: "slow"}); h.end.Class != roles.Timeout || h.text != "half" {
		t.Errorf("%+v", h)
	}
}

// An answer to a prompt on standard input needs no tool.
func TestHearWithoutTools(t *testing.T) {
	out := `{"type":"system","subtype":"init","session_id":"s"}
{"type":"assistant","message":{"content":[{"type":"text","text":"SECURITY: OK"}]}}
{"type":"result","subtype":"success","result":"SECURITY: OK","session_id":"s","modelUsage":{"m":{"inputTokens":7,"outputTokens":2,"cacheReadInputTokens":0,"cacheCreationInputTokens":0}}}
`
	h := hear(ofName(t, "claude").reader(agent.Call{Model: "m"}), []byte(out), ended{Class: roles.Done})
	if h.end.Class != roles.Done || h.end.Reason != "" || h.text != "SECURITY: OK" || len(h.usage) != 1 || *h.usage[0].Total != 9 {
		t.Errorf("%+v", h)
	}
}

func TestHostCommands(t *testing.T) {
	for _, c := range [][2]string{
		{"claude", "claude -p --model m --dangerously-skip-permissions --output-format stream-json --verbose"},
		{"codex", "codex exec --json --dangerously-bypass-approvals-and-sandbox --skip-git-repo-check --model m -"},
		{"copilot", "copilot --allow-all-tools --allow-all-paths --model m --no-color --output-format json --usage-output-file /rec/usage.json"},
		{"gemini", "gemini --approval-mode yolo -m m -o stream-json"},
	} {
		cmd, err := ofName(t, c[0]).host(agent.Call{Model: "m", Prompt: "/rec/prompt.md"})
		if got := strings.Join(cmd.Argv, " "); err != nil || got != c[1] {
			t.Errorf("%s, want %s (%v)", got, c[1], err)
		}
	}
}

// ofName is one of the agents that are offered.
func ofName(t *testing.T, name string) cliAgent {
	t.Helper()
	for _, a := range offered() {
		if a.name == name {
			return a
		}
	}
	t.Fatalf("%s is not offered", name)
	return cliAgent{}
}
