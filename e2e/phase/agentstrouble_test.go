package phase

import (
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"abl/internal/state"
	"abl/internal/testing/lab"
	"abl/internal/testing/modelserver"
	"abl/internal/tokens"
	"abl/roles/agent"
)

// agentTrouble is a trouble of an agent's provider that ends the first call of a run.
type agentTrouble struct {
	is    modelserver.Trouble
	class string
	exit  int
	says  string // on stderr
	loop  string // settings of this run in the section loop
	soak  bool   // the Gemini CLI retries for minutes
}

// agentTroubles are the troubles that every agent meets, in the words of its API.
func agentTroubles(a program) []agentTrouble {
	all := []agentTrouble{
		{"401", "refused", 5, a.keyVar + " is refused", "", false},
		{modelserver.Broke, "quota", 75, "the provider wants somebody to pay", "", false},
		{"500", "away", 75, "the provider answers 500", "", true},
		{modelserver.TooLong, "large", 5, "the prompt is longer than the model takes", "", false},
	}
	if a.name == "gemini" {
		all = append(all,
			agentTrouble{modelserver.Forged, "refused", 5, a.keyVar + " is refused", "", true},
			agentTrouble{"429 90000", "rate", 75, "", "", true},
			agentTrouble{modelserver.Silence, "away", 75, "", ", idle_timeout: 20s", true})
	}
	return all
}

// Every real CLI meets the troubles of its provider one after the other. The exit code of the
// CLI, its output and its own retries decide nothing: the requests through the gateway do. Then
// the user stops abl in the middle of a call. The next run makes the call again, and the CLI
// survives a short trouble by itself. The ledger has the tokens of the stopped call.
func TestAgentsMeetTrouble(t *testing.T) {
	lab.Long(t)
	for _, a := range append(rarePrograms(), programs["gemini"]) {
		t.Run(a.name, func(t *testing.T) {
			if a.name != "gemini" {
				a.needed(t)
			}
			n := int64(1000)
			b := builds(gate(t, "one"), write("server.mjs", server))
			v := verifies()
			b.Usage = []agent.ScriptUsage{{Model: a.model, Count: tokens.Count{Input: &n, Candidates: &n, Total: &n}}}
			v.Usage = b.Usage
			p := newProject(t, "", b, v)
			var meets atomic.Value // the trouble of all requests
			meets.Store(modelserver.Trouble(""))
			var hiccups atomic.Int64
			m := a.serve(t, p, ".abl/scenario.yaml", func(int64, string) modelserver.Trouble {
				if hiccups.Add(-1) >= 0 {
					return "503"
				}
				return meets.Load().(modelserver.Trouble)
			})
			configure := func(loop string) {
				p.Write(".abl/config.yaml", replacing(scripted, "loop: {call_timeout: 6m, outage_budget: 0s"+loop+"}\n")+nodeApp)
			}
			made := 0
			for _, c := range agentTroubles(a) {
				if c.soak && a.name == "gemini" && os.Getenv("ABL_SOAK") == "" {
					continue
				}
				made++
				t.Run(strings.ReplaceAll(string(c.is), " ", "-for-"), func(t *testing.T) {
					meets.Store(c.is)
					configure(c.loop)
					before := m.asked.Load()
					r := p.Must(c.exit, "phase", "1", "--agent", a.name, "--json")
					ends := of(events(t, r), state.CallEnd)
					if len(ends) != 1 || ends[0].Class != c.class || !strings.HasPrefix(ends[0].Evidence, "gateway: ") {
						t.Fatalf("calls: got %+v, want one of class %q by the gateway's evidence", ends, c.class)
					}
					wants(t, "the error", r.Stderr, c.says)
					a.hidden(t, p, r)
					noLeftovers(p)
					t.Logf("%s, %d requests in %v", ends[0].Evidence, m.asked.Load()-before, time.Duration(ends[0].MS)*time.Millisecond)
				})
			}
			meets.Store(modelserver.Trouble(""))
			configure("")
			a.isStopped(t, p, made)
			hiccups.Store(2)
			p.Must(0, "phase", "1", "--agent", a.name)
			if got := hiccups.Load(); got >= 0 {
				t.Errorf("the model failed %d times, want 2", 2-got)
			}
			rows := ledgerRows(p)
			if got, want := len(rows), made+3; got != want {
				t.Fatalf("rows of the ledger: got %d, want %d: %v", got, want, rows)
			}
			if row := rows[made]; row["outcome"] != "interrupted" || row["source"] != "gateway" || row["total"] == "" || row["total"] == "0" {
				t.Errorf("row of the stopped call: got %v, want interrupted, counted by the gateway", row)
			}
			noLeftovers(p)
		})
	}
}

// isStopped interrupts abl while the CLI waits at the first gate, and opens the gate. Git ignores the
// gate's files, or they would be edits by hand.
func (a program) isStopped(t *testing.T, p *lab.Project, made int) {
	t.Helper()
	p.Write("src/.gitignore", "/.gitignore\n/at-one\n/go-one\n")
	r := watch(p, func(e state.Event, abl *os.Process) {
		if e.Kind == state.Action && strings.Contains(e.Text, "at-one") {
			until(p, "src/at-one")
			_ = abl.Signal(os.Interrupt)
		}
	}, "phase", "1", "--agent", a.name)
	ends := of(events(t, r), state.CallEnd)
	if r.Code != 130 || len(ends) != 1 || ends[0].Class != "interrupted" {
		t.Fatalf("got exit %d and the calls %+v after %d others, want 130 and interrupted: %s", r.Code, ends, made, r.Stderr)
	}
	noLeftovers(p)
	p.Write("src/go-one", "")
}
