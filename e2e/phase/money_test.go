package phase

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"abl/internal/gateway"
	"abl/internal/state"
	"abl/internal/testing/lab"
	"abl/internal/tokens"
	"abl/roles/agent"
)

// dear is a price at which the few tokens of a scripted model come to dollars.
const dear = "prices: {gemini-2.5-pro: {input: 1000, output: 1000}}\n"

// thousand is a call that uses so many thousand tokens, over all of its requests:
// at the dear price, as many dollars.
func thousand(c agent.ScriptCall, n int64) agent.ScriptCall {
	in, out, all := n*900, n*100, n*1000
	c.Usage = []agent.ScriptUsage{{Model: "gemini-2.5-pro", Count: tokens.Count{Input: &in, Candidates: &out, Total: &all}}}
	return c
}

// spentBy is the sum of cost_usd in the ledger; every row must have one.
func spentBy(p *lab.Project) (sum float64) {
	p.Helper()
	for _, row := range ledgerRows(p) {
		usd, err := strconv.ParseFloat(row["cost_usd"], 64)
		if err != nil {
			p.Errorf("a row costs %q: %v", row["cost_usd"], row)
		}
		sum += usd
	}
	return sum
}

// A budget in dollars ends a call in the middle; a new run spends nothing; and
// --budget-usd +N goes on. The model's price is the project's own.
func TestDollarsEndACallAndMoreGoOn(t *testing.T) {
	p := newProject(t, nodeApp+dear+"budget: {phase: {usd: 2}}\n",
		thousand(builds(write("server.mjs", server), run("true"), run("true"), run("true"), run("true")), 6), thousand(verifies(), 6))
	asked := loopbackModel(t, p, ".abl/scenario.yaml", "a-key-of-nobody-5101", (*httptest.Server).Start)

	r := p.Must(6, "phase", "1", "--agent", "gemini", "--json")
	wants(t, "the error", r.Stderr, "the budget of this phase is reached", "of 2 USD are spent", "--budget-usd +5")
	wants(t, "the events", r.Stdout, "the budget of this phase is used up", "of 2 USD")
	ends := of(events(t, r), state.CallEnd)
	if len(ends) != 1 || ends[0].Class != "budget" {
		t.Errorf("calls ended as %+v", ends)
	}
	spent, before := spentBy(p), asked.Load()
	if spent < 2 || spent >= 6 || before == 0 {
		t.Errorf("%g USD after %d requests, want the call ended in the middle", spent, before)
	}

	r = p.Must(6, "phase", "1", "--agent", "gemini")
	wants(t, "the second run", r.Stderr, "of 2 USD of the phase are spent")
	if now := asked.Load(); now != before || len(ledgerRows(p)) != 1 {
		t.Errorf("%d further requests after a restart", now-before)
	}

	p.Must(0, "phase", "1", "--agent", "gemini", "--budget-usd", "+50")
	if now := spentBy(p); now < spent+12-0.001 {
		t.Errorf("%g USD in all, after %g", now, spent)
	}
	noLeftovers(p)
}

// abl is killed in the middle of a call and comes back with less to spend: the
// gateway, which was there all the time, has not forgotten what it let through.
func TestTheGatewayKeepsItsCountWhenAblIsKilled(t *testing.T) {
	lab.Long(t)
	const gate = "touch at; until [ -e go ]; do sleep 0.02; done; rm -f at go"
	p := newProject(t, nodeApp+dear+"budget: {phase: {usd: 500}}\n",
		thousand(builds(write("server.mjs", server), run(gate), run("true"), run("true")), 20), thousand(verifies(), 1))
	asked := loopbackModel(t, p, ".abl/scenario.yaml", "a-key-of-nobody-5102", (*httptest.Server).Start)
	killAt(p, "src/at", "phase", "1", "--agent", "gemini", "--json")
	before := asked.Load()
	r := watch(p, func(e state.Event, _ *os.Process) {
		if e.Kind == state.CallResume {
			for !strings.Contains(gatewayLog(t, p), `"kind":"command"`) { // it has the bounds of this run
				time.Sleep(20 * time.Millisecond)
			}
			p.Write("src/go", "")
		}
	}, "phase", "1", "--agent", "gemini", "--budget-usd", "1")
	if r.Code != 6 {
		t.Fatalf("exit %d: %s", r.Code, r.Stderr)
	}
	wants(t, "the error", r.Stderr, "the budget of this phase is reached", "of 1")
	if now := asked.Load(); now != before {
		t.Errorf("%d requests beyond a budget that was spent before abl was killed", now-before)
	}
	if spent := spentBy(p); spent < 1 {
		t.Errorf("%g USD are in the ledger", spent)
	}
	noLeftovers(p)
}

// A Builder floods its gateway's log after most of its tokens are spent: each one is in the
// ledger, and counts towards the budget.
func TestAFloodedGatewayForgetsNoToken(t *testing.T) {
	lab.Long(t)
	flood, err := os.ReadFile("testdata/flood.mjs")
	if err != nil {
		t.Fatal(err)
	}
	p := newProject(t, nodeApp+"budget: {phase: {tokens: 350000}}\n",
		thousand(builds(write("server.mjs", server), write("flood.mjs", string(flood)), must(0, "node flood.mjs"), run("rm flood.mjs")), 300),
		thousand(verifies(run("true"), run("true")), 300))
	loopbackModel(t, p, ".abl/scenario.yaml", "a-key-of-nobody-5103", (*httptest.Server).Start)

	r := p.Must(6, "phase", "1", "--agent", "gemini")
	wants(t, "the error", r.Stderr, "the budget of this phase is reached", "of 350000")
	rows := ledgerRows(p)
	if len(rows) != 2 || rows[0]["source"] != "gateway" || rows[0]["total"] != "300000" || rows[0]["outcome"] != "done" {
		t.Errorf("the ledger has %v", rows)
	}
	unlogged := 0
	for line := range strings.Lines(p.Read(".abl/logs/calls/p1-build-1.1/gateway.jsonl")) {
		var e gateway.Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		unlogged += int(e.Unlogged)
	}
	if unlogged < 59_000 {
		t.Errorf("%d requests have no line of their own: that was no flood", unlogged)
	}
	noLeftovers(p)
}

// gatewayLog is what the project's running gateway has told.
func gatewayLog(t testing.TB, p *lab.Project) string {
	t.Helper()
	id := docker(t, "ps", "-q", "--filter", "label=abl.project="+p.ID(), "--filter", "label=abl.kind=gateway")
	if id == "" {
		return ""
	}
	return docker(t, "logs", id)
}
