package phase

import (
	"strings"
	"sync/atomic"
	"testing"

	"abl/internal/state"
	"abl/internal/testing/lab"
	"abl/internal/testing/modelserver"
)

// answerFault is a fault of a model's answer after which a CLI may report success.
type answerFault struct {
	is    modelserver.Trouble
	class string
	exit  int
	calls int // of the Builder
	says  string
	loop  string // settings of this run in the section loop
}

var answerFaults = []answerFault{
	{modelserver.Unended, "away", 75, 1, "does not say that it is finished", ""},
	{modelserver.Erring, "away", 75, 1, "ends its answer with an error", ""},
	{modelserver.Jumbled, "away", 75, 1, "a part of it is not JSON", ""},
	{modelserver.Limited, "cut", 5, 2, "was cut at", ""},
	{modelserver.TooLong, "large", 5, 2, "the provider answers 400", ""}, // the second call, from its start
	{modelserver.Silence, "away", 75, 1, "(stopped as idle)", ", idle_timeout: 10s"},
}

// Every real CLI uses a tool, and then each of its answers is faulty or does not come. Some CLIs report success,
// some fail, some ask again and again: the class is the same, by the gateway's evidence, and no
// iteration is used.
func TestAgentsMeetFaultyAnswers(t *testing.T) {
	lab.Long(t)
	for _, a := range append(rarePrograms(), programs["gemini"]) {
		t.Run(a.name, func(t *testing.T) {
			if a.name != "gemini" {
				a.needed(t)
			}
			b := builds(write("server.mjs", server))
			p := newProject(t, "", b, verifies())
			var fault atomic.Value // of all answers but the first of a run
			var first atomic.Int64 // request of the run
			m := a.serve(t, p, ".abl/scenario.yaml", func(n int64, _ string) modelserver.Trouble {
				if n <= first.Load() {
					return ""
				}
				return fault.Load().(modelserver.Trouble)
			})
			for _, c := range answerFaults {
				t.Run(string(c.is), func(t *testing.T) {
					p.Write(".abl/config.yaml", replacing(scripted, "loop: {call_timeout: 6m, outage_budget: 0s"+c.loop+"}\n")+nodeApp)
					before := m.asked.Load()
					fault.Store(c.is)
					first.Store(before + 1)
					r := p.Must(c.exit, "phase", "1", "--agent", a.name, "--json")
					ends := of(events(t, r), state.CallEnd)
					if len(ends) != c.calls {
						t.Fatalf("calls: got %+v, want %d", ends, c.calls)
					}
					for _, end := range ends {
						if end.Class != c.class || !strings.HasPrefix(end.Evidence, "gateway: ") || !strings.Contains(end.Text, c.says) {
							t.Errorf("call %s: got %q by %q: %s, want %q by the gateway: %q",
								end.Call, end.Class, end.Evidence, end.Text, c.class, c.says)
						}
					}
					if got := verdictsOf(p); !strings.HasPrefix(got, "1 ") {
						t.Errorf("iteration and status: got %q, want iteration 1", got)
					}
					noLeftovers(p)
					t.Logf("%s: exit code %d of the CLI, %d requests", ends[0].Evidence, *ends[0].Exit, m.asked.Load()-before)
				})
			}
		})
	}
}
