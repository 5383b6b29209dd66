package view

import (
	"strings"
	"testing"
	"time"

	"abl/internal/state"

	"github.com/google/go-cmp/cmp"
)

// The status line shows the usage of the running call. Without a terminal a line reports it once a
// minute, also while the agent's actions are printed.
func TestRunningCallIsCounted(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	now := start
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	var out strings.Builder
	plain := &lines{out: &out, now: func() time.Time { return now }}
	live := &lines{out: &strings.Builder{}, live: true, now: plain.now, width: func() int { return 100 }}
	show := func(e state.Event) {
		now = e.Time
		e.Role, e.Phase, e.Iteration = "builder", 1, 1
		plain.show(e)
		live.show(e)
	}
	show(state.Event{Time: at(0), Kind: state.CallStart, Agent: "claude"})
	show(state.Event{Time: at(20), Kind: state.Running, Tokens: new(int64(12345)), CostUSD: "0.25"})
	show(state.Event{Time: at(55), Kind: state.Action, Text: "reads a file"})
	if got, want := live.status(), "builder  phase 1, iteration 1  0:55  12,345 tokens, 0.25 USD > reads a file"; got != want {
		t.Errorf("the status line is %q, want %q", got, want)
	}
	plain.redraw()
	now = at(60)
	plain.redraw()
	plain.redraw()
	show(state.Event{Time: at(100), Kind: state.Running, Tokens: new(int64(20000)), AtLeast: true})
	now = at(120)
	plain.redraw()
	show(state.Event{Time: at(125), Kind: state.CallEnd, Class: "done"})
	show(state.Event{Time: at(126), Kind: state.Outcome, Exit: new(0)})
	now = at(300)
	plain.redraw()
	want := []string{
		"   0:00  builder    iteration 1 starts: claude",
		"   0:55  builder  > reads a file",
		"   1:00  builder    still running, 1 action, 12,345 tokens, 0.25 USD",
		"   2:00  builder    still running, 1 action, at least 20,000 tokens",
		"   2:05  builder    done, 1 action",
		"   2:06  abl        ended (2:06, tokens unknown, cost unknown)",
	}
	if diff := cmp.Diff(want, strings.Split(strings.TrimRight(out.String(), "\n"), "\n")); diff != "" {
		t.Errorf("the lines (-want +got):\n%s", diff)
	}
}

// Events are printed at least once a minute until the run has ended.
func TestEventsBeat(t *testing.T) {
	var out strings.Builder
	events := &jsonLines{out: &out}
	began := time.Now()
	events.beat(began.Add(time.Hour))
	events.show(state.Event{Kind: state.CallStart, Phase: 1, Iteration: 2, Role: "builder", Call: "p1-build-2.1", Agent: "claude"})
	events.beat(began)
	events.beat(began.Add(2 * time.Minute))
	events.show(state.Event{Kind: state.Outcome, Phase: 1})
	events.beat(began.Add(time.Hour))
	got := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(got) != 3 || !strings.Contains(got[1], `"event":"running","phase":1,"iteration":2,"role":"builder","call":"p1-build-2.1"}`) {
		t.Errorf("got %q, want a call_start, one running and the outcome", got)
	}
}
