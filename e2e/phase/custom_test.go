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
