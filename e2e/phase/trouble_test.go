package phase

import (
	"strings"
	"testing"

	"abl/internal/testing/lab"
	"abl/internal/tokens"
	"abl/roles/agent"
)

// ends is a call that ends in this way, its tokens told.
func ends(c agent.ScriptCall, end agent.End) agent.ScriptCall {
	n := int64(60_000)
	c.End, c.Usage = end, []agent.ScriptUsage{{Model: "demo", Count: tokens.Count{Total: &n}}}
	return c
}

// A provider that is away, or refuses the key, ends the run at once and at no
// cost of an iteration; the next run goes on, and the tokens are kept.
func TestProvidersTrouble(t *testing.T) {
	good := builds(write("server.mjs", server))
	p := newProject(t, nodeApp, ends(builds(), agent.EndAway), verifies())
	p.Write(".abl/config.yaml", replacing(scripted, "loop: {call_timeout: 60s, outage_budget: 0s}\n")+nodeApp)
	r := p.Must(75, "phase", "1")
	wants(t, "away", r.Stderr, "the provider is away")
	script(p, ends(builds(), agent.EndLogin), verifies())
	r = p.Must(5, "phase", "1")
	wants(t, "refused", r.Stderr, "the provider refused the login")
	if n := strings.Count(p.Read(".abl/logs/tokens.csv"), ",demo,"); n != 2 {
		t.Errorf("%d rows are in the ledger for two calls, want one a call", n)
	}
	script(p, good, verifies())
	p.Must(0, "phase", "1")
	var status struct {
		Phases []struct {
			Iteration int `json:"iteration"`
		} `json:"phases"`
	}
	p.JSON(&status, "status", "--json")
	if status.Phases[0].Iteration != 1 {
		t.Errorf("trouble cost iterations: passed in iteration %d", status.Phases[0].Iteration)
	}
	noLeftovers(p)
}

// A cap in tokens is asked before every call.
func TestBudget(t *testing.T) {
	lab.Long(t)
	p := newProject(t, nodeApp+"budget: {phase: {tokens: 50000}}\n", ends(builds(write("server.mjs", server)), agent.EndOK), verifies())
	r := p.Must(6, "phase", "1")
	wants(t, "the cap", r.Stderr, "60000 of 50000 tokens")
	if p.Read(".abl/logs/calls/p1-verify-1.1/intent.json") != "" {
		t.Error("a Verifier was called beyond the cap")
	}
	p.Write(".abl/config.yaml", scripted+nodeApp+"budget: {phase: {tokens: 500000}}\n")
	p.Must(0, "phase", "1")
}
