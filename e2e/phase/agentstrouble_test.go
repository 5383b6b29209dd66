package phase

import (
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"abl/internal/state"
	"abl/internal/testing/lab"
	"abl/internal/testing/modelserver"
	"abl/internal/usage"
	"abl/roles/agent"
)

// The user stops abl during a call of every real CLI. The next run repeats the call, and the CLI
// recovers from a short trouble without abl. The ledger has the tokens of the stopped call.
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
			b.Usage = []agent.ScriptUsage{{Model: a.model, Count: usage.Count{Input: &n, Candidates: &n, Total: &n}}}
			v.Usage = b.Usage
			p := newProject(t, "", b, v)
			var hiccups atomic.Int64
			a.serve(t, p, ".abl/scenario.yaml", func(int64, string) modelserver.Trouble {
				if hiccups.Add(-1) >= 0 {
					return "503"
				}
				return ""
			})
			p.Write(".abl/config.yaml", replacing(scripted, "loop: {call_timeout: 6m, outage_budget: 0s}\n")+nodeApp)
			a.isStopped(t, p)
			hiccups.Store(2)
			p.Must(0, "phase", "1", "--agent", a.name)
			if got := hiccups.Load(); got >= 0 {
				t.Errorf("failures of the model: got %d, want 2", 2-got)
			}
			rows := ledgerRows(p)
			if got := len(rows); got != 3 {
				t.Fatalf("rows of the ledger: got %d, want 3: %v", got, rows)
			}
			if row := rows[0]; row["outcome"] != "interrupted" || row["source"] != "gateway" || row["total"] == "" ||
				row["total"] == "0" {
				t.Errorf("row of the stopped call: got %v, want interrupted, counted by the gateway", row)
			}
			checkNothingLeft(p)
		})
	}
}

// isStopped interrupts abl while the CLI waits at the first gate, and opens the gate. Git ignores
// the gate's files, so that they are not edits of the user.
func (a program) isStopped(t *testing.T, p *lab.Project) {
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
		t.Fatalf("got exit %d and the calls %+v, want 130 and one interrupted: %s", r.Code, ends, r.Stderr)
	}
	checkNothingLeft(p)
	p.Write("src/go-one", "")
}
