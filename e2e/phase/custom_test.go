package phase

import (
	"strings"
	"testing"
)

// An agent of the person's own plays the Builder: a shell command, its task on
// standard input, the tokens of its usage line in the ledger.
func TestAgentOfOnesOwn(t *testing.T) {
	p := newProject(t, nodeApp, verifies())
	command := `cmp - "$ABL_PROMPT" && grep -q 'GET / → 200' "$ABL_PROMPT" && mkdir -p builder_reports && echo done > builder_reports/phase1_v1_mine.md && ` +
		`printf '%s' "$SERVER" > server.mjs && echo "{\"result\": {\"usage\": {\"input_tokens\": 120, \"output_tokens\": 30, \"total_tokens\": 150}, \"model\": \"$ABL_MODEL\"}}"`
	config := strings.Replace(p.Read(".abl/config.yaml"), "agent: scripted\n", "agent: {builder: mine, verifier: scripted}\n", 1)
	config = strings.Replace(config, "agents: {scripted: {scenario: .abl/scenario.yaml}}\n",
		"agents:\n  scripted: {scenario: .abl/scenario.yaml}\n  mine:\n    model: my-model\n    usage: result.usage\n    env: {SERVER: \"import http from 'node:http'; http.createServer((q, r) => r.end('ok')).listen(3000)\"}\n    command: |\n      "+command+"\n", 1)
	p.Write(".abl/config.yaml", config)
	r := p.Must(0, "phase", "1", "--json")
	if got := verdicts(events(t, r)); got != "pass" {
		t.Errorf("verdicts %q", got)
	}
	row := ledgerRows(p)[0]
	if row["agent"] != "mine" || row["model"] != "my-model" || row["input"] != "120" || row["candidates"] != "30" || row["total"] != "150" || row["source"] != "cli" {
		t.Errorf("its row is %v", row)
	}
	noLeftovers(p)
}
