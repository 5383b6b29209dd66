package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"abl/internal/config"
	"abl/orchestrator/ledger"
	"abl/orchestrator/prices"
	"abl/orchestrator/project"
	"abl/orchestrator/state"
	"abl/roles"
)

// spends is a row of so many cents in a step of a phase.
func spends(phase, step string, cents int64) ledger.Row {
	return ledger.Row{Phase: phase, Step: step, Total: &cents, CostUSD: (prices.USD(cents) * prices.Dollar / 100).String(), Source: ledger.Gateway}
}

func TestForecast(t *testing.T) {
	for name, c := range map[string]struct {
		phases map[string]*state.Phase
		rows   []ledger.Row
		want   string
	}{
		"nothing runs":     {map[string]*state.Phase{"1": {Status: state.Passed}}, []ledger.Row{spends("1", "1", 5)}, "-"},
		"nothing to go by": {map[string]*state.Phase{"1": {Status: state.Building, Iteration: 1, Step: 1}}, []ledger.Row{spends("1", "1", 5)}, "-"},
		"by other phases": {map[string]*state.Phase{"1": {Status: state.Passed}, "2": {Status: state.Verifying, Iteration: 1, Step: 1}},
			[]ledger.Row{spends("1", "1", 100), spends("1", "2", 300), spends("2", "1", 50)},
			"phase 2 is in iteration 1 of 5: 0.50 USD so far; about 2.00 USD if it passes now, 10.00 USD if all 5 are needed (2.00 USD an iteration, the mean of 2 of other phases)"},
		"by its own, over all rounds": {map[string]*state.Phase{"2": {Status: state.Building, Iteration: 2, Step: 4}},
			[]ledger.Row{spends("1", "1", 9900), spends("2", "1", 100), spends("2", "2", 100), spends("2", "3", 100), spends("2", "4", 150)},
			"phase 2 is in iteration 2 of 5: 4.50 USD so far; about 4.50 USD if it passes now, 7.50 USD if all 5 are needed (1.00 USD an iteration, the mean of 3 before)"},
		"refuted: the next one begins": {map[string]*state.Phase{"1": {Status: state.Refuted, Iteration: 4, Step: 4}},
			[]ledger.Row{spends("1", "4", 100)},
			"phase 1 is in iteration 5 of 5: 1.00 USD so far; about 2.00 USD when it is over (1.00 USD an iteration, the mean of 1 before)"},
		"what is not known": {map[string]*state.Phase{"1": {Status: state.Building, Iteration: 2, Step: 2}},
			[]ledger.Row{spends("1", "1", 100), {Phase: "1", Step: "1", Source: ledger.Nobody}},
			"phase 1 is in iteration 2 of 5: at least 1.00 USD so far; about at least 2.00 USD if it passes now, at least 5.00 USD if all 5 are needed (at least 1.00 USD an iteration, the mean of 1 before)"},
	} {
		totals := ledger.NewTotals(ledger.Ways()...)
		for _, r := range c.rows {
			totals.Add(r)
		}
		s := &session{conf: &config.Loaded{Config: config.Default()}}
		got := "-"
		f := s.forecast(&state.File{Phases: c.phases}, map[ledger.By][]ledger.Group{ledger.ByPhase: totals.Groups(ledger.ByPhase), ledger.ByIter: totals.Groups(ledger.ByIter)})
		if f != nil {
			got = f.text()
		}
		if got != c.want {
			t.Errorf("%s:\n%s, want\n%s", name, got, c.want)
		}
	}
}

// The call that is on counts by what its gateway has counted so far, until it has
// ended and is in the ledger.
func TestForecastHasTheCallThatIsOn(t *testing.T) {
	s := &session{conf: &config.Loaded{Config: config.Default()}, project: project.New(t.TempDir(), "src", "tests")}
	rec := roles.Record{Dir: s.project.Call("p1-build-2.1")}
	if err := os.MkdirAll(rec.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	totals := ledger.NewTotals(ledger.Ways()...)
	totals.Add(spends("1", "1", 100))
	f := &state.File{Phases: map[string]*state.Phase{"1": {Status: state.Building, Iteration: 2, Step: 2, Call: "p1-build-2.1"}}}
	says := func() string {
		return s.forecast(f, map[ledger.By][]ledger.Group{ledger.ByPhase: totals.Groups(ledger.ByPhase), ledger.ByIter: totals.Groups(ledger.ByIter)}).text()
	}
	const before = "phase 1 is in iteration 2 of 5: 1.00 USD so far; about 2.00 USD if"
	if got := says(); !strings.HasPrefix(got, before) {
		t.Error(got)
	}
	usd := prices.Dollars(0.4)
	if err := rec.NoteSpent(roles.Charged{Tokens: 40, USD: &usd}); err != nil {
		t.Fatal(err)
	}
	if got := says(); !strings.HasPrefix(got, "phase 1 is in iteration 2 of 5: 1.40 USD so far, 0.40 USD of it in the call that is on; about 2.00 USD if") {
		t.Error(got)
	}
	if err := rec.NoteSpent(roles.Charged{Tokens: 40}); err != nil {
		t.Fatal(err)
	}
	if got := says(); !strings.Contains(got, "at least 40 tokens of it in the call that is on; about at least 2.00 USD if") {
		t.Error(got)
	}
	if err := rec.SaveOutcome(roles.Outcome{Key: "p1-build-2.1"}); err != nil {
		t.Fatal(err)
	}
	if got := says(); !strings.HasPrefix(got, before) {
		t.Error(got)
	}
}

func TestPictureOverTime(t *testing.T) {
	var line timeline
	begin := time.Date(2026, 11, 1, 0, 30, 0, 0, time.UTC)
	at := func(hours int, cents int64) {
		r := spends("1", "1", cents)
		r.Timestamp = ledger.Stamp(begin.Add(time.Duration(hours) * time.Hour))
		usd, _ := r.Cost()
		line.add(r, usd)
	}
	if got := line.plot(80); got != "" {
		t.Errorf("nothing looks like %q", got)
	}
	at(0, 800)
	at(0, 800)
	at(2, 800)
	at(3, 1)
	want := `
USD per hour, UTC
     16.00 |███
           |███
           |███
           |███
           |███     ███
           |███     ███
           |███     ███
           |███     ███ ▁▁▁
         0 +----------------
            2026-11-01 00h to 2026-11-01 03h
`
	if got := line.plot(80); got != want {
		t.Errorf("got\n%s", got)
	}
	at(24*100, 5)
	line.add(ledger.Row{Timestamp: "soon"}, 0)
	got := line.plot(62)
	for _, part := range []string{"USD per 3 days, UTC", "2026-11-01 to 2027-02-09", "1 rows are not in it"} {
		if !strings.Contains(got, part) {
			t.Errorf("lacks %q:\n%s", part, got)
		}
	}
	for row := range strings.Lines(got) {
		if n := len([]rune(strings.TrimRight(row, "\n"))); n > 80 {
			t.Errorf("%d columns: %s", n, row)
		}
	}
	for i := range mostHours + 10 {
		at(200*24+i, 1)
	}
	if len(line.hours) > mostHours {
		t.Errorf("%d hours are kept", len(line.hours))
	}
	var tokens timeline
	five := int64(5)
	tokens.add(ledger.Row{Timestamp: ledger.Stamp(begin), Total: &five}, 0)
	if got := tokens.plot(80); !strings.Contains(got, "tokens per hour") || !strings.Contains(got, fmt.Sprintf("%10d |", 5)) {
		t.Errorf("without prices\n%s", got)
	}
}
