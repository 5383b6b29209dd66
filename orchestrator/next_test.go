package orchestrator

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"abl/internal/failedspecs"
	"abl/internal/outcome"
	"abl/internal/state"
	"abl/roles/call"
)

// walk runs a phase from ready. Each word is the result of the next call or judgement. It returns the
// status of the phase after every step.
func walk(t *testing.T, max int, words string) string {
	t.Helper()
	return walkFrom(t, state.Phase{Status: state.Ready}, max, words)
}

// walkFrom is walk for a phase with another status.
func walkFrom(t *testing.T, p state.Phase, max int, words string) string {
	t.Helper()
	var out strings.Builder
	script := strings.Fields(words)
	for range 100 {
		step, err := Next(p)
		if err != nil {
			t.Fatal(err)
		}
		if step == Rest {
			break
		}
		var h Happened
		word := ""
		if step == Build || step == Judge || step == Verify || p.Status == state.Stale {
			if len(script) == 0 {
				break
			}
			word, script = script[0], script[1:]
			h = happens(t, word)
		}
		was := p.Status
		h.Retry.Now = noon
		p, err = After(p, step, h, max)
		fmt.Fprintf(&out, "%s: %s %s → %s i%d step-%d.%d", was, step, word, p.Status, p.Iteration, p.Step, p.Attempt)
		if len(p.Why) > 0 {
			fmt.Fprintf(&out, " (%s)", p.Why[0])
		}
		if err != nil {
			fmt.Fprintf(&out, " stop: %v", err)
		}
		out.WriteString("\n")
		if err != nil {
			break
		}
	}
	return out.String()
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func happens(t *testing.T, word string) Happened {
	switch word {
	case "done":
		return Happened{Class: outcome.Done, Report: true}
	case "silent":
		return Happened{Class: outcome.Done}
	case "crash":
		return Happened{Class: outcome.Crashed, Reason: "ended by signal 9"}
	case "away":
		return Happened{Class: outcome.Unavailable, Reason: "HTTP status 429"}
	case "refused":
		return Happened{Class: outcome.Refused, Reason: "HTTP status 401"}
	case "stop":
		return Happened{Class: outcome.Interrupted}
	case "tagged":
		return Happened{Recheck: true}
	case "untagged":
		return Happened{}
	case "pass":
		return Happened{Verdict: Pass}
	case "fail":
		return Happened{Verdict: Fail, Entries: []failedspecs.Entry{{Spec: "GET / → 200"}}}
	case "unknown":
		return Happened{Verdict: Unknown, Missing: []string{"no report"}}
	case "same":
		return Happened{Verdict: Unknown, Missing: []string{"no report"}, Idle: true}
	}
	t.Fatalf("no such word: %q", word)
	return Happened{}
}

func TestWalk(t *testing.T) {
	for _, c := range []struct{ name, words, want string }{
		{"a fail, then a pass", "done done fail done done pass", `
ready: begin a round  → building i1 step-1.1
building: run the builder done → built i1 step-1.1
built: commit the source  → verifying i1 step-1.1
verifying: run the verifier done → verified i1 step-1.1
verified: judge fail → refuted i1 step-1.1
refuted: begin the next iteration  → building i2 step-2.1
building: run the builder done → built i2 step-2.1
built: commit the source  → verifying i2 step-2.1
verifying: run the verifier done → verified i2 step-2.1
verified: judge pass → passed i2 step-2.1
`},
		{"a builder without its report is asked once", "silent silent done pass", `
ready: begin a round  → building i1 step-1.1
building: run the builder silent → built i1 step-1.1
built: commit the source  → building i1 step-1.2 (the run report of this call is missing)
building: run the builder silent → built i1 step-1.2 (the run report of this call is missing)
built: commit the source  → verifying i1 step-1.1
verifying: run the verifier done → verified i1 step-1.1
verified: judge pass → passed i1 step-1.1
`},
		{"no verdict twice costs an iteration of the verifier alone", "done done unknown done unknown done pass", `
ready: begin a round  → building i1 step-1.1
building: run the builder done → built i1 step-1.1
built: commit the source  → verifying i1 step-1.1
verifying: run the verifier done → verified i1 step-1.1
verified: judge unknown → verifying i1 step-1.2 (no report)
verifying: run the verifier done → verified i1 step-1.2 (no report)
verified: judge unknown → verifying i2 step-2.1 (no report)
verifying: run the verifier done → verified i2 step-2.1 (no report)
verified: judge pass → passed i2 step-2.1
`},
		{"no verdict again, for the same reason as often as is allowed", "done done unknown done same", `
ready: begin a round  → building i1 step-1.1
building: run the builder done → built i1 step-1.1
built: commit the source  → verifying i1 step-1.1
verifying: run the verifier done → verified i1 step-1.1
verified: judge unknown → verifying i1 step-1.2 (no report)
verifying: run the verifier done → verified i1 step-1.2 (no report)
verified: judge same → unverified i1 step-1.2 (no report)
`},
		{"crashes consume no iteration and stop the run", "crash done crash unknown crash unknown", `
ready: begin a round  → building i1 step-1.1
building: run the builder crash → built i1 step-1.1
built: commit the source  → building i1 step-1.2 (that call was ended early: crashed)
building: run the builder done → built i1 step-1.2 (that call was ended early: crashed)
built: commit the source  → verifying i1 step-1.1
verifying: run the verifier crash → verified i1 step-1.1
verified: judge unknown → verifying i1 step-1.2 (no report)
verifying: run the verifier crash → verified i1 step-1.2 (no report)
verified: judge unknown → verifying i1 step-1.3 (no report) stop: the agent failed: the verifier's call ended as "crashed": ended by signal 9
`},
		{"an interrupted call begins again", "stop done done pass", `
ready: begin a round  → building i1 step-1.1
building: run the builder stop → building i1 step-1.2
building: run the builder done → built i1 step-1.2
built: commit the source  → verifying i1 step-1.1
verifying: run the verifier done → verified i1 step-1.1
verified: judge pass → passed i1 step-1.1
`},
		{"a provider that is away stops the run at once", "away", `
ready: begin a round  → building i1 step-1.1
building: run the builder away → built i1 step-1.1
built: commit the source  → building i1 step-1.2 (that call was ended early: away) stop: the provider is unavailable: HTTP status 429; come back after 2026-03-01 12:00:02 UTC
`},
		{"a refused key stops the verifier too", "done refused unknown", `
ready: begin a round  → building i1 step-1.1
building: run the builder done → built i1 step-1.1
built: commit the source  → verifying i1 step-1.1
verifying: run the verifier refused → verified i1 step-1.1
verified: judge unknown → verifying i1 step-1.2 (no report) stop: the provider refused the login: HTTP status 401
`},
		{"a crash with a well-formed entry is a fail", "done crash fail done done pass", `
ready: begin a round  → building i1 step-1.1
building: run the builder done → built i1 step-1.1
built: commit the source  → verifying i1 step-1.1
verifying: run the verifier crash → verified i1 step-1.1
verified: judge fail → refuted i1 step-1.1
refuted: begin the next iteration  → building i2 step-2.1
building: run the builder done → built i2 step-2.1
built: commit the source  → verifying i2 step-2.1
verifying: run the verifier done → verified i2 step-2.1
verified: judge pass → passed i2 step-2.1
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, want := walk(t, 5, c.words), strings.TrimPrefix(c.want, "\n"); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// A stale phase is replayed before it is built again. The replay does not count as an iteration.
func TestWalkOfAStalePhase(t *testing.T) {
	stale := state.Phase{Status: state.Stale, Round: 1, Iteration: 2, Step: 2, Attempt: 1}
	for _, c := range []struct{ name, words, want string }{
		{"it-holds", "tagged done pass", `
stale: begin a round tagged → verifying i0 step-3.1
verifying: run the verifier done → verified i0 step-3.1
verified: judge pass → passed i0 step-3.1
`},
		{"it-is-broken", "tagged done fail done done pass", `
stale: begin a round tagged → verifying i0 step-3.1
verifying: run the verifier done → verified i0 step-3.1
verified: judge fail → refuted i0 step-3.1
refuted: begin the next iteration  → building i1 step-4.1
building: run the builder done → built i1 step-4.1
built: commit the source  → verifying i1 step-4.1
verifying: run the verifier done → verified i1 step-4.1
verified: judge pass → passed i1 step-4.1
`},
		{"the-replay-shows-nothing", "tagged done unknown done pass", `
stale: begin a round tagged → verifying i0 step-3.1
verifying: run the verifier done → verified i0 step-3.1
verified: judge unknown → verifying i1 step-4.1 (no report)
verifying: run the verifier done → verified i1 step-4.1 (no report)
verified: judge pass → passed i1 step-4.1
`},
		{"nothing-can-be-replayed", "untagged done pass", `
stale: begin a round untagged → verifying i1 step-3.1
verifying: run the verifier done → verified i1 step-3.1
verified: judge pass → passed i1 step-3.1
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, want := walkFrom(t, stale, 1, c.words), strings.TrimPrefix(c.want, "\n"); got != want {
				t.Errorf("got %s\nwant\n%s", got, want)
			}
		})
	}
}

func TestWalkEndsAfterItsIterations(t *testing.T) {
	stuck := walk(t, 2, "done done fail done done fail")
	if want := "verified: judge fail → stuck i2 step-2.1\n"; !strings.HasSuffix(stuck, want) {
		t.Errorf("two fails in two iterations: got\n%s\nwant the last line %q", stuck, want)
	}
	open := walk(t, 2, "done done fail done done unknown done unknown")
	if want := "verified: judge unknown → unverified i2 step-2.2 (no report)\n"; !strings.HasSuffix(open, want) {
		t.Errorf("no verdict in the last iteration: got\n%s\nwant the last line %q", open, want)
	}
}

func TestNextIsTotal(t *testing.T) {
	for _, s := range state.Statuses() {
		if _, err := Next(state.Phase{Status: s}); err != nil {
			t.Errorf("Next(%s): got error %v, want none", s, err)
		}
	}
	if _, err := Next(state.Phase{Status: "odd"}); err == nil {
		t.Error("Next of an unknown status: got no error, want one")
	}
	if _, err := After(state.Phase{}, Rest, Happened{}, 5); err == nil {
		t.Error("After(Rest): got no error, want one")
	}
}

func TestAfterGivesUpOnTheBuilder(t *testing.T) {
	p := state.Phase{Status: state.Built, Class: string(outcome.Timeout), Attempt: 2, Tries: 1, Note: "stopped"}
	p, err := After(p, CommitSrc, Happened{Commit: "c"}, 5)
	if !errors.Is(err, call.ErrAgent) || p.Status != state.Building || p.Attempt != 3 || p.Tries != 0 {
		t.Errorf("After: got %+v, %v, want %s, attempt 3, no tries, %v", p, err, state.Building, call.ErrAgent)
	}
}

func TestRoundBeginsAfterRecordedSteps(t *testing.T) {
	p, err := After(state.Phase{Status: state.Ready}, Begin, Happened{Floor: 4}, 5)
	if err != nil || p.Step != 5 || p.Iteration != 1 || p.Round != 1 {
		t.Errorf("new round: got step %d, iteration %d, round %d, %v, want step 5, iteration 1, round 1",
			p.Step, p.Iteration, p.Round, err)
	}
}
