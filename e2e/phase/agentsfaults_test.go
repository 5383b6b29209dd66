package phase

import (
	"cmp"
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"abl/internal/outcome"
	"abl/internal/state"
	"abl/internal/testing/lab"
	"abl/internal/testing/modelserver"
	"abl/internal/usage"
	"abl/roles/agent"
)

// agentFault is a fault of a provider, with its effect on a phase whose Builder meets it.
type agentFault struct {
	is   modelserver.Trouble
	what string // for docs/faults.md
	tool bool   // the fault starts after the first response, with which the agent used a tool
	last int64  // number of requests with the fault, 0 for all
	faultEnd
	says    string // on standard error; KEY stands for the variable of the agent's key
	unknown bool   // the cost of the call is unknown
	loop    string // settings of the section loop in this run
}

// faultEnd is the end of a run: the class of each call, their number, and the exit code.
type faultEnd struct {
	class outcome.Outcome
	calls int
	exit  int
}

var (
	endsLarge   = faultEnd{outcome.TooLarge, 1, 5}
	endsRefused = faultEnd{outcome.Refused, 1, 5}
	endsQuota   = faultEnd{outcome.Quota, 1, 75}
	endsAway    = faultEnd{outcome.Unavailable, 1, 75}
)

// agentFaults lists the faults. Each API has its own status and message for a fault (see
// modelserver).
var agentFaults = []agentFault{
	{
		is:       modelserver.TooLong,
		what:     "the prompt has more tokens than the model accepts: 400",
		faultEnd: endsLarge,
		says:     "the prompt is longer than the model accepts",
	},
	{
		is:       modelserver.TooBig,
		what:     "the request has more bytes than the API accepts: 413, Gemini 400",
		faultEnd: endsLarge,
		says:     "the prompt is longer than the model accepts",
	},
	{
		is:       modelserver.Forged,
		what:     "the key is invalid: 401, Gemini 400",
		faultEnd: endsRefused,
		says:     "KEY is refused",
	},
	{
		is:       "403",
		what:     "the key may not use the model: 403",
		faultEnd: endsRefused,
		says:     "KEY is refused",
	},
	{
		is:       modelserver.NoModel,
		what:     "the model does not exist: 404",
		faultEnd: faultEnd{outcome.NoModel, 1, 5},
		says:     "models.builder names",
	},
	{
		is:       modelserver.Broke,
		what:     "the account has no money: 429, Anthropic 400, Gemini 403",
		faultEnd: endsQuota,
		says:     "the provider requires a payment",
	},
	{
		is:       modelserver.Daily,
		what:     "the quota of a day or a month is used up: 429, Anthropic 400",
		faultEnd: endsQuota,
		says:     "come back after",
	},
	{
		is:       "429 90000",
		what:     "a rate limit with Retry-After of a day: 429",
		faultEnd: endsQuota,
		says:     "come back after",
	},
	{
		is:       "429 1",
		what:     "a rate limit with Retry-After of a second: 429",
		faultEnd: faultEnd{outcome.RateLimited, 1, 75},
		says:     "the provider responds 429",
	},
	{
		is:       "500",
		what:     "the server fails: 500",
		faultEnd: endsAway,
		says:     "the provider responds 500",
	},
	{
		is:       modelserver.Loaded,
		what:     "the model is overloaded: 503, Anthropic 529",
		faultEnd: endsAway,
		says:     "overloaded",
	},
	{
		is:       modelserver.Reset,
		what:     "the connection is closed without a response",
		faultEnd: faultEnd{outcome.Network, 1, 75},
		says:     "the provider did not respond",
		unknown:  true,
	},
	{
		is:       modelserver.Garbled,
		what:     "200 with unexpected JSON",
		faultEnd: endsAway,
		says:     "with something other than a response of a model",
		unknown:  true,
	},
	{
		is:       modelserver.Page,
		what:     "200 with a web page, as from a proxy",
		faultEnd: endsAway,
		says:     "with something other than a response of a model",
		unknown:  true,
	},
	{
		is:       modelserver.Empty,
		what:     "200 with an empty body",
		faultEnd: endsAway,
		says:     "with something other than a response of a model",
		unknown:  true,
	},
	{
		is:       modelserver.Blank,
		what:     "a complete response without text or a tool call",
		faultEnd: faultEnd{outcome.Nothing, 2, 5},
		says:     "used no tool",
	},
	{
		is:       modelserver.Slow,
		what:     "one byte at a time, until `loop.call_timeout`",
		faultEnd: endsAway,
		says:     "(stopped as timeout)",
		unknown:  true,
		loop:     "call_timeout: 20s",
	},
	{
		is:       modelserver.Silence,
		tool:     true,
		what:     "no response, until `loop.idle_timeout`",
		faultEnd: endsAway,
		says:     "(stopped as idle)",
		unknown:  true,
		loop:     "call_timeout: 6m, idle_timeout: 10s",
	},
	{
		is:       modelserver.Half,
		tool:     true,
		what:     "the connection breaks during a response",
		faultEnd: endsAway,
		says:     "the provider's response is incomplete",
		unknown:  true,
	},
	{
		is:       modelserver.Unended,
		tool:     true,
		what:     "the response has no last event",
		faultEnd: endsAway,
		says:     "has no finish reason",
		unknown:  true,
	},
	{
		is:       modelserver.Erring,
		tool:     true,
		what:     "the response ends with an error",
		faultEnd: endsAway,
		says:     "ended its response with an error",
		unknown:  true,
	},
	{
		is:       modelserver.Jumbled,
		tool:     true,
		what:     "an event of the response is not JSON",
		faultEnd: endsAway,
		says:     "a part of it is not JSON",
		unknown:  true,
	},
	{
		is:       modelserver.Limited,
		what:     "the first response is cut at the token limit",
		faultEnd: faultEnd{outcome.Cut, 2, 5},
		says:     "was cut off at",
	},
	{
		is:       modelserver.Declined,
		what:     "a filter, or the model, declines the first response",
		faultEnd: faultEnd{outcome.Filtered, 2, 5},
		says:     "refused to respond",
	},
	{
		is:       modelserver.Limited,
		tool:     true,
		what:     "the response is cut at the token limit",
		faultEnd: faultEnd{outcome.Cut, 2, 5},
		says:     "was cut off at",
	},
	{
		is:       modelserver.Declined,
		tool:     true,
		what:     "a filter, or the model, declines to respond",
		faultEnd: faultEnd{outcome.Filtered, 2, 5},
		says:     "refused to respond",
	},
	{
		is:       modelserver.TooLong,
		tool:     true,
		what:     "the conversation becomes longer than the model accepts: 400",
		faultEnd: faultEnd{outcome.TooLarge, 2, 5},
		says:     "the prompt is longer than the model accepts",
	},
	{
		is:       "500",
		tool:     true,
		what:     "the server fails after a response: 500",
		faultEnd: endsAway,
		says:     "the provider responds 500",
	},
	{ // the last one, because the phase passes
		is:       "429 1",
		last:     2,
		what:     "a rate limit for two requests, with Retry-After of a second: 429",
		faultEnd: faultEnd{outcome.Done, 2, 0},
	},
}

// name returns the name of the subtest.
func (f agentFault) name() string {
	name := strings.ReplaceAll(string(f.is), " ", "-for-")
	if f.tool {
		name += "-after-tool-use"
	}
	if f.last > 0 {
		name += fmt.Sprintf("-%d-times", f.last)
	}
	return name
}

// Every real CLI meets each fault of its provider. Some CLIs report success, some fail, and some
// repeat the request. The class is always the same, because the gateway determines it, and only a
// call that is done uses an iteration.
func TestAgentsMeetFaults(t *testing.T) {
	lab.Long(t)
	for _, a := range append(rarePrograms(), programs["gemini"]) {
		t.Run(a.name, func(t *testing.T) {
			if a.name != "gemini" {
				a.needed(t)
			}
			n := int64(1000)
			b, v := builds(write("server.mjs", server)), verifies()
			b.Usage = []agent.ScriptUsage{{Model: a.model, Count: usage.Count{Input: &n, Candidates: &n, Total: &n}}}
			v.Usage = b.Usage
			p := newProject(t, "", b, v)
			var fault atomic.Value
			var first, last atomic.Int64 // requests with the fault
			m := a.serve(t, p, ".abl/scenario.yaml", func(n int64, _ string) modelserver.Trouble {
				if n < first.Load() || n > last.Load() {
					return ""
				}
				return fault.Load().(modelserver.Trouble)
			})
			for _, f := range agentFaults {
				t.Run(f.name(), func(t *testing.T) {
					before := m.asked.Load()
					fault.Store(f.is)
					from := before + 1
					if f.tool {
						from++
					}
					first.Store(from)
					last.Store(math.MaxInt64)
					if f.last > 0 {
						last.Store(from + f.last - 1)
					}
					p := &lab.Project{TB: t, Dir: p.Dir, Env: p.Env}
					f.meets(t, p, a, m)
					t.Logf("%d requests", m.asked.Load()-before)
				})
			}
		})
	}
}

// meets runs the phase with the fault of the agent's provider.
func (f agentFault) meets(t *testing.T, p *lab.Project, a program, m *askedModel) {
	t.Helper()
	loop := "loop: {outage_budget: 0s, " + cmp.Or(f.loop, "call_timeout: 6m") + "}\n"
	p.Write(".abl/config.yaml", replacing(scripted, loop)+nodeApp)
	r := p.Run("phase", "1", "--agent", a.name, "--json")
	ends := of(events(t, r), state.CallEnd)
	for _, end := range ends {
		if end.Class != string(f.class) || f.class != outcome.Done && !strings.HasPrefix(end.Evidence, "gateway: ") {
			t.Errorf("call %s: got %q by %q, want %q by the gateway", end.Call, end.Class, end.Evidence, f.class)
		}
		t.Logf("%s: %s, exit code %d of the CLI after %v",
			end.Class, end.Evidence, *end.Exit, time.Duration(end.MS)*time.Millisecond)
	}
	if len(ends) != f.calls || r.Code != f.exit {
		t.Errorf("got %d calls and exit %d, want %d and %d: %s", len(ends), r.Code, f.calls, f.exit, r.Stderr)
	}
	rows := ledgerRows(p)
	for _, row := range rows[max(0, len(rows)-f.calls):] {
		if row["outcome"] != string(f.class) || (row["cost_usd"] == "unknown") != f.unknown {
			t.Errorf("row of the ledger: got %v, want the outcome %s, an unknown cost: %t", row, f.class, f.unknown)
		}
	}
	wants(t, "standard error", strings.ToLower(r.Stderr), strings.ToLower(strings.ReplaceAll(f.says, "KEY", a.keyVar)))
	if got := verdictsOf(p); !strings.HasPrefix(got, "1 ") {
		t.Errorf("iteration and status: got %q, want iteration 1", got)
	}
	a.checkKeyHidden(t, p, r)
	checkNothingLeft(p)
}

var updatePage = flag.Bool("update", false, "write the list in docs/faults.md")

const (
	faultsPage = "../../docs/faults.md"
	listBegin  = "<!-- This list is written by go test ./e2e/phase -run TestFaultsPage -update. -->\n\n"
	listEnd    = "\n<!-- end -->\n"
)

// faultsList returns the list in docs/faults.md: each class with its faults.
func faultsList() string {
	var b strings.Builder
	listed := map[outcome.Outcome]bool{}
	for _, first := range agentFaults {
		if listed[first.class] {
			continue
		}
		listed[first.class] = true
		fmt.Fprintf(&b, "- `%s`, exit %d:\n", first.class, first.exit)
		for _, f := range agentFaults {
			if f.class == first.class {
				fmt.Fprintf(&b, "  - %s\n", f.what)
			}
		}
	}
	return b.String()
}

// docs/faults.md lists the faults of TestAgentsMeetFaults.
func TestFaultsPage(t *testing.T) {
	page, err := os.ReadFile(faultsPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(page), listBegin)
	list, after, ends := strings.Cut(rest, listEnd)
	if !begins || !ends {
		t.Fatalf("%s: got no list between the lines %q and %q, want one", faultsPage, listBegin, listEnd)
	}
	want := faultsList()
	if *updatePage {
		if err := os.WriteFile(faultsPage, []byte(before+listBegin+want+listEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if list != want {
		t.Errorf("the list in %s: got\n%s\nwant (-update writes it)\n%s", faultsPage, list, want)
	}
}
