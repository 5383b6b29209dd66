package phase

import (
	"os"
	"strings"
	"testing"
	"time"

	"abl/internal/state"
	"abl/internal/testing/lab"
	"abl/internal/testing/modelserver"
	"abl/internal/tokens"
	"abl/roles/agent"
)

// Each real CLI meets what a provider in trouble says in its API's own words. The
// CLI's exit code, its words and its own retries decide nothing: what passed the
// gateway does, as for every other agent.
func TestAgentsMeetTrouble(t *testing.T) {
	lab.Long(t)
	for _, a := range rarePrograms() {
		for _, c := range []struct {
			trouble modelserver.Trouble
			class   string
			exit    int
			says    string // to the person
		}{
			{"401", "refused", 5, a.keyVar + " is refused"},
			{modelserver.Broke, "quota", 75, "the provider wants somebody to pay"},
			{"500", "away", 75, "the provider answers 500"},
			{modelserver.TooLong, "large", 5, "the prompt is longer than the model takes"},
		} {
			t.Run(a.name+"/"+string(c.trouble), func(t *testing.T) {
				a.needed(t)
				n := int64(100)
				used := []agent.ScriptUsage{{Model: a.model, Count: tokens.Count{Input: &n, Candidates: &n, Total: &n}}}
				b, v := builds(write("server.mjs", server)), verifies()
				b.Usage, v.Usage = used, used
				p := newProject(t, "", b, v)
				p.Write(".abl/config.yaml", replacing(scripted, "loop: {call_timeout: 6m, outage_budget: 0s}\n")+nodeApp)
				m := a.serve(t, p, ".abl/scenario.yaml", func(int64, string) modelserver.Trouble { return c.trouble })
				r := p.Must(c.exit, "phase", "1", "--agent", a.name, "--json")
				ends := of(events(t, r), state.CallEnd)
				if len(ends) != 1 || ends[0].Class != c.class || !strings.HasPrefix(ends[0].Evidence, "gateway: ") {
					t.Fatalf("the calls ended as %+v", ends)
				}
				wants(t, "the error", r.Stderr, c.says)
				a.hidden(t, p, r)
				noLeftovers(p)
				t.Logf("%s, %d requests in %v, and the CLI said: %s\n%s", ends[0].Evidence, m.asked.Load(),
					time.Duration(ends[0].MS)*time.Millisecond, p.Read(".abl/logs/calls/p1-build-1.1/stdout"), r.Stderr)
			})
		}
	}
}

// Each real CLI is stopped in the middle of its work, and the next run makes the
// call anew. What it had used until then is in the ledger, whatever the CLI says
// as it dies.
func TestAgentsAreStopped(t *testing.T) {
	lab.Long(t)
	for _, a := range rarePrograms() {
		t.Run(a.name, func(t *testing.T) {
			a.needed(t)
			b, v := builds(run("touch at; until [ -e go ]; do sleep 0.05; done"), write("server.mjs", server)), verifies()
			n := int64(1000)
			used := []agent.ScriptUsage{{Model: a.model, Count: tokens.Count{Input: &n, Candidates: &n, Total: &n}}}
			b.Usage, v.Usage = used, used
			p := newProject(t, nodeApp, b, v)
			a.serve(t, p, ".abl/scenario.yaml", nil)
			r := watch(p, func(e state.Event, abl *os.Process) {
				if e.Kind == state.Action && strings.Contains(e.Text, "touch at") {
					_ = abl.Signal(os.Interrupt)
				}
			}, "phase", "1", "--agent", a.name)
			ends := of(events(t, r), state.CallEnd)
			if r.Code != 130 || len(ends) != 1 || ends[0].Class != "interrupted" {
				t.Fatalf("exit %d, the calls ended as %+v: %s\nthe CLI said: %s", r.Code, ends, r.Stderr, p.Read(".abl/logs/calls/p1-build-1.1/stdout"))
			}
			noLeftovers(p)
			p.Write("src/go", "")
			p.Must(0, "phase", "1", "--agent", a.name)
			rows := ledgerRows(p)
			if len(rows) != 3 || rows[0]["outcome"] != "interrupted" || rows[0]["source"] != "gateway" || rows[0]["total"] == "" || rows[0]["total"] == "0" {
				t.Errorf("ledger %v", rows)
			}
			noLeftovers(p)
		})
	}
}
