package phase

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"abl/internal/gateway"
	"abl/internal/state"
	"abl/internal/testing/lab"
	"abl/internal/usage"
	"abl/roles/agent"
)

// dear is a price at which the few tokens of a scripted model cost dollars.
const dear = "prices: {gemini-3.8-flash: {input: 1000, output: 1000}}\n"

// withThousands returns the call with a usage of n thousand tokens over all its requests: at the
// dear price, n dollars.
func withThousands(c agent.ScriptCall, n int64) agent.ScriptCall {
	in, out, all := n*900, n*100, n*1000
	c.Usage = []agent.ScriptUsage{{
		Model: "gemini-3.8-flash",
		Count: usage.Count{Input: &in, Candidates: &out, Total: &all},
	}}
	return c
}

// spentBy returns the sum of cost_usd in the ledger. Every row must have a cost.
func spentBy(p *lab.Project) (sum float64) {
	p.Helper()
	for _, row := range ledgerRows(p) {
		usd, err := strconv.ParseFloat(row["cost_usd"], 64)
		if err != nil {
			p.Errorf("cost_usd: got %q, want a number: %v", row["cost_usd"], row)
		}
		sum += usd
	}
	return sum
}

// The caps of a call in tokens and of a phase in dollars end a call in the middle. No call starts
// beyond a cap of the phase, in dollars or in tokens. --budget-usd +N raises the cap. The model
// runs on this machine's loopback, which no container reaches, with a certificate of the user,
// and its price is in the project's settings.
func TestBudgetsEndCalls(t *testing.T) {
	const key, first = "a-key-of-nobody-5101", "p1-build-1.1"
	p := newProject(t, nodeApp+dear+"network: {ca_cert: .abl/ca.pem}\nbudget: {phase: {usd: 2}}\n",
		withThousands(builds(write("server.mjs", server), run("true"), run("true"), run("true"), run("true")),
			6), withThousands(verifies(), 6))
	// The CLI is slow on a busy machine.
	p.Write(".abl/config.yaml", replacing(p.Read(".abl/config.yaml"), "loop: {call_timeout: 5m}\n"))
	asked := loopbackModel(t, p, ".abl/scenario.yaml", key, (*httptest.Server).StartTLS)
	env := p.Env
	phase := func(code int, setting string, args ...string) lab.Result {
		t.Helper()
		p.Env = append(slices.Clone(env), setting)
		r := p.Must(code, append([]string{"phase", "1", "--agent", "gemini", "--json"}, args...)...)
		for _, e := range of(events(t, r), state.CallEnd) {
			if code != 0 && e.Class != "budget" {
				t.Errorf("got the end %q of call %s, want %q", e.Class, e.Call, "budget")
			}
		}
		lacks(t, "the output of abl", r.Stdout+r.Stderr, key)
		return r
	}

	r := phase(6, "ABL_BUDGET_CALL_TOKENS=500")
	wants(t, "the error", r.Stderr, "the budget is reached", "of 500", "raise the limit")
	rows := ledgerRows(p)
	if len(rows) != 1 || rows[0]["source"] != "gateway" || rows[0]["outcome"] != "budget" || rows[0]["total"] == "" {
		t.Errorf("ledger: got %v, want one row of the gateway with the outcome budget", rows)
	}
	kept := p.Read(".abl/logs/calls/" + first + "/gateway.jsonl")
	wants(t, "the gateway's log", kept, `"over":true`, `"kind":"end"`)
	lacks(t, "the gateway's log", kept, key)

	r = phase(6, "")
	wants(t, "the error", r.Stderr, "the budget of this phase is reached", "of 2 USD are spent", "--budget-usd +5")
	wants(t, "the events", r.Stdout, "the budget of this phase is used up", "of 2 USD")
	spent, before := spentBy(p), asked.Load()
	if spent < 2 || spent >= 6 || before == 0 {
		t.Errorf("got %g USD after %d requests, want the second call ended in the middle", spent, before)
	}

	wants(t, "another run", phase(6, "").Stderr, "of 2 USD of the phase are spent")
	wants(t, "a run with a cap in tokens", phase(6, "ABL_BUDGET_PHASE_TOKENS=100", "--budget-usd", "+50").Stderr,
		"of 100 tokens of the phase are used")
	if now := asked.Load(); now != before || len(ledgerRows(p)) != 2 {
		t.Errorf("got %d further requests and the ledger %v, want no call beyond the caps", now-before, ledgerRows(p))
	}

	if testing.Short() {
		checkNothingLeft(p)
		return
	}
	phase(0, "", "--budget-usd", "+50")
	if now := spentBy(p); now < spent+12-0.001 {
		t.Errorf("got %g USD in all, after %g, want 12 more", now, spent)
	}
	if files := holding(t, p.Dir, key); len(files) > 0 {
		t.Errorf("got the key in %v, want no file", files)
	}
	checkNothingLeft(p)
}

// abl is killed twice during a call. The next abl uses the same gateway, and the gateway finds
// the model at the same address. The tools of the CLI use their own proxy. The last abl has less
// to spend, and the gateway still counts the requests before the kills. Events and abl status show
// the usage of the running call.
func TestGatewayOutlivesAbl(t *testing.T) {
	lab.Long(t)
	lab.Egress(t)
	p := newProject(t, nodeApp+dear+"network: {allow: [npm]}\nbudget: {phase: {usd: 500}}\n",
		withThousands(builds(write("server.mjs", server), gate(t, "one"),
			must(0, "npm install --no-audit --no-fund is-number@7.0.0"),
			gate(t, "two"), run("true"), run("true")), 20), withThousands(verifies(), 1))
	asked := loopbackModel(t, p, ".abl/scenario.yaml", "a-key-of-nobody-5102", (*httptest.Server).Start)
	p.Write(".abl/config.yaml", replacing(p.Read(".abl/config.yaml"), "loop: {call_timeout: 5m}\n"))
	phase := []string{"phase", "1", "--agent", "gemini"}

	killAt(p, "src/at-one", append(phase, "--json")...)
	before, gateway := asked.Load(), gatewayID(t, p)
	waits, counted := false, false // at the second gate; an event has its usage
	again := watch(p, func(e state.Event, abl *os.Process) {
		switch {
		case e.Kind == state.CallResume:
			if now := gatewayID(t, p); now != gateway || now == "" {
				t.Errorf("got the gateway %q, want %q", now, gateway)
			}
			p.Write("src/go-one", "")
		case e.Kind == state.Action && strings.Contains(e.Text, "at-two"):
			until(p, "src/at-two")
			waits = true
		case e.Kind == state.Running && e.Tokens != nil && *e.Tokens > 0 && e.CostUSD != "":
			counted = true
		}
		if waits && counted {
			wants(t, "abl status", p.Must(0, "status").Stdout, " tokens", " USD so far")
			_ = abl.Kill()
		}
	}, phase...)
	installed, now := p.Exists("src/node_modules/is-number/package.json"), asked.Load()
	if again.Code != -1 || !installed || now <= before {
		t.Fatalf("got exit %d, package installed: %t, %d then %d requests; want a kill at the second gate: %s\n%s\n%s", again.Code, installed,
			before, now, again.Stderr, p.Read(".abl/logs/calls/p1-build-1.1/stdout"), p.Read(".abl/logs/calls/p1-build-1.1/gateway.jsonl"))
	}

	before = now
	r := watch(p, func(e state.Event, _ *os.Process) {
		if e.Kind == state.CallResume {
			for commands := 0; commands < 2; time.Sleep(20 * time.Millisecond) { // until the gateway has the limits of this run
				commands = strings.Count(gatewayLog(t, p), `"kind":"command"`)
			}
			p.Write("src/go-two", "")
		}
	}, append(phase, "--budget-usd", "1")...)
	if r.Code != 6 {
		t.Fatalf("got exit %d, want 6: %s", r.Code, r.Stderr)
	}
	wants(t, "the error", r.Stderr, "the budget of this phase is reached", "of 1")
	if now := asked.Load(); now != before {
		t.Errorf("got %d requests beyond a budget that was spent before the kill, want 0", now-before)
	}
	rows := ledgerRows(p)
	if spent := spentBy(p); len(rows) != 1 || rows[0]["source"] != "gateway" || rows[0]["total"] == "" || spent < 1 {
		t.Errorf("got %g USD in the ledger %v, want 1 or more in one row of the gateway", spent, rows)
	}
	checkNothingLeft(p)
}

// A Builder floods its gateway's log after it has spent most of its tokens. Each token is in the
// ledger and counts towards the budget.
func TestFloodedGatewayCountsEveryToken(t *testing.T) {
	lab.Long(t)
	p := newProject(t, nodeApp+"budget: {phase: {tokens: 350000}}\n",
		withThousands(builds(write("server.mjs", server), write("flood.mjs", lab.File(t, "flood.mjs")),
			must(0, "node flood.mjs"), run("rm flood.mjs")), 300),
		withThousands(verifies(run("true"), run("true")), 300))
	loopbackModel(t, p, ".abl/scenario.yaml", "a-key-of-nobody-5103", (*httptest.Server).Start)

	r := p.Must(6, "phase", "1", "--agent", "gemini")
	wants(t, "the error", r.Stderr, "the budget of this phase is reached", "of 350000")
	rows := ledgerRows(p)
	if len(rows) != 2 || rows[0]["source"] != "gateway" || rows[0]["total"] != "300000" || rows[0]["outcome"] != "done" {
		t.Errorf("the ledger: got %v, want 2 rows and the first with 300000 tokens by the gateway", rows)
	}
	unlogged := 0
	for line := range strings.Lines(p.Read(".abl/logs/calls/p1-build-1.1/gateway.jsonl")) {
		var e gateway.Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("line of gateway.jsonl: got %q, error %v, want valid JSON", line, err)
		}
		unlogged += int(e.Unlogged)
	}
	if unlogged < 59_000 {
		t.Errorf("requests without a separate log line: got %d, want 59000 or more", unlogged)
	}
	checkNothingLeft(p)
}

// gatewayLog returns the log of the project's running gateway.
func gatewayLog(t testing.TB, p *lab.Project) string {
	t.Helper()
	id := gatewayID(t, p)
	if id == "" {
		return ""
	}
	return docker(t, "logs", id)
}

// gatewayID returns the id of the project's running gateway, or "".
func gatewayID(t testing.TB, p *lab.Project) string {
	t.Helper()
	return docker(t, "ps", "-q", "--filter", "label=abl.project="+p.ID(), "--filter", "label=abl.kind=gateway")
}
