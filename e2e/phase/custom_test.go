package phase

import (
	"strings"
	"testing"

	"abl/internal/testing/lab"
)

// The user's own agent plays the Builder. The ledger has the token counts of the usage line that
// it prints.
func TestCustomAgent(t *testing.T) {
	p := newProject(t, nodeApp, verifies())
	const agents = "agent: scripted\nagents: {scripted: {scenario: .abl/scenario.yaml}}\n"
	p.Write(".abl/config.yaml", strings.Replace(p.Read(".abl/config.yaml"), agents, lab.File(t, "own-agent.yaml"), 1))
	r := p.Must(0, "phase", "1", "--json")
	if got, want := verdicts(events(t, r)), "pass"; got != want {
		t.Errorf("verdicts: got %q, want %q", got, want)
	}
	row := ledgerRows(p)[0]
	for column, want := range map[string]string{
		"agent":      "mine",
		"model":      "my-model",
		"input":      "120",
		"candidates": "30",
		"total":      "150",
		"source":     "cli",
	} {
		if row[column] != want {
			t.Errorf("%s of the ledger: got %q, want %q", column, row[column], want)
		}
	}
	checkNothingLeft(p)
}

// A custom agent that exits with 0 but did not run the tool that its model called, or got no
// response, has not done its task. Its container has the gateway's address and a token, but no
// key.
func TestCustomAgentThatDidNothing(t *testing.T) {
	for _, c := range []struct{ name, asks, reason string }{
		{"open call", lab.File(t, "asks-once.sh"),
			"the agent ended without running the tool that the model's last answer calls"},
		{"no response", "env > env.txt; exit 0\n", "the agent ended without a successful response of its model"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newProject(t, nodeApp, builds(run("true")), verifies())
			a := program{"mine", "my-model", "MY_KEY", "", "/v1", "Authorization", false, ""}
			m := a.serve(t, p, ".abl/scenario.yaml", nil)
			address := strings.TrimPrefix(p.Env[len(p.Env)-1], "=")
			p.Write(".abl/config.yaml", strings.Replace(p.Read(".abl/config.yaml"), "agents: {",
				"agents: {mine: {api: openai-chat, key: MY_KEY, base: \""+address+"\", model: my-model, command: sh asks.sh}, ", 1))
			p.Write("src/asks.sh", c.asks)
			r := p.Run("phase", "1", "--builder-agent", "mine", "--json")
			if r.Code == 0 || !strings.Contains(r.Stderr, c.reason) {
				t.Errorf("got exit code %d, want another than 0 and %q: %s\n%s", r.Code, c.reason, r.Stderr, m.log.String())
			}
			rows := ledgerRows(p)
			if len(rows) == 0 || rows[0]["outcome"] != "nothing" || rows[0]["source"] != "gateway" {
				t.Errorf("got the rows %v, want the outcome nothing from the gateway first", rows)
			}
			box := p.Read("src/env.txt")
			wants(t, "the container's environment", box, "ABL_BASE_URL=http://gateway:8080/", "/openai-chat/v1\n", "ABL_TOKEN=")
			lacks(t, "the container's environment", box, a.key())
			a.checkKeyHidden(t, p, r)
			checkNothingLeft(p)
		})
	}
}
