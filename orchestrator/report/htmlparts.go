package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"abl/internal/audit"
	"abl/internal/ledger"
	"abl/internal/outcome"
	"abl/internal/wording"
	"abl/roles/agent"
)

// diffs is the change of an iteration as the page shows it.
type diffs struct {
	Change
	What, Dir      string // source or tests, and the folder of its repository
	Added, Removed int    // lower bounds if Unread
	Unread         bool
	Shown          []fileDiff
}

type fileDiff struct {
	FileChange
	Added, Removed int
	Parts          []part
	Cut            bool
}

// part is a run of lines of one type: ins, del, at or same.
type part struct{ Kind, Text string }

// Diffs returns the changes of the source and of the tests, by step.
func (p Page) Diffs() []diffs {
	all := append(diffsOf(p.Changes, "Source", p.Src, maxDiffs), diffsOf(p.Tests, "Tests", ".abl/tests", maxDiffs/2)...)
	slices.SortStableFunc(all, func(a, b diffs) int { return cmp.Compare(a.Step, b.Step) })
	return all
}

// diffsOf leaves out the oldest diffs that do not fit.
func diffsOf(changes []Change, what, dir string, most int) (all []diffs) {
	room := allowance(most)
	for _, c := range slices.Backward(changes) {
		d := diffs{Change: c, What: what, Dir: dir}
		for _, f := range c.Files {
			text, fits := room.fit(f.Diff, maxOneDiff)
			shown := fileDiff{FileChange: f, Parts: partsOf(text), Cut: !fits || strings.HasSuffix(text, wording.CutMark) ||
				f.Unread}
			d.Unread = d.Unread || f.Unread
			for l := range strings.Lines(f.Diff) {
				switch l[0] {
				case '+':
					shown.Added++
				case '-':
					shown.Removed++
				}
			}
			d.Added, d.Removed, d.Shown = d.Added+shown.Added, d.Removed+shown.Removed, append(d.Shown, shown)
		}
		all = append(all, d)
	}
	slices.Reverse(all)
	return all
}

// partsOf splits a unified diff.
func partsOf(text string) (all []part) {
	for l := range strings.Lines(text) {
		kind := map[byte]string{'+': "ins", '-': "del", '@': "at"}[l[0]]
		if last := len(all) - 1; last >= 0 && all[last].Kind == kind {
			all[last].Text += l
		} else {
			all = append(all, part{kind, l})
		}
	}
	return all
}

// talk is the transcript of a call as the page shows it.
type talk struct {
	Turn
	Actions int
	Shown   []agent.Message
	Left    int // number of the oldest messages, which are left out
}

// Talks returns the transcripts. It leaves out the oldest messages of the oldest calls that do not
// fit.
func (p Page) Talks() []talk {
	all, room := make([]talk, len(p.Turns)), allowance(maxTalk)
	for i, turn := range slices.Backward(p.Turns) {
		t := talk{Turn: turn, Left: turn.Left}
		for k, m := range slices.Backward(turn.Said) {
			text, fits := room.fit(m.Text, maxBlock)
			detail, too := room.fit(m.Detail, maxBlock)
			if !fits || !too {
				t.Left += k + 1
				break
			}
			if m.Kind == agent.Called {
				t.Actions++
			}
			t.Shown = append(t.Shown, agent.Message{Kind: m.Kind, Text: text, Detail: detail})
		}
		slices.Reverse(t.Shown)
		all[i] = t
	}
	return all
}

// timeline has a line for each call, on a common axis on which long pauses are shortened.
type timeline struct {
	Whole  string // from the first call to the last verdict
	Worked string // time of calls and replays, "" if unknown
	Rows   []moment
	Cut    string // the time that is left out of the axis
}

// moment is a call on the axis, in thousandths of its length, with the wait before it.
type moment struct {
	Turn
	Took                        time.Duration
	WaitFrom, WaitLong, At, For float64
	Waited                      time.Duration // for an unavailable provider or engine
	Well                        bool
}

// Times returns the timeline of the calls with known times.
func (p Page) Times() (t timeline) {
	turns := slices.DeleteFunc(slices.Clone(p.Turns), func(t Turn) bool {
		return t.Started.IsZero() ||
			t.Ended.Before(t.Started)
	})
	slices.SortStableFunc(turns, func(a, b Turn) int { return a.Started.Compare(b.Started) })
	t.Whole = "unknown"
	if len(turns) == 0 {
		return t
	}
	first, last, busy := turns[0].Started, turns[0].Started, time.Duration(0)
	for _, turn := range turns {
		busy += turn.Ended.Sub(turn.Started)
	}
	longest := max(busy/2, 10*time.Second) // so that calls stay visible beside a long pause
	at, cut, before := time.Duration(0), time.Duration(0), outcome.Done
	for _, turn := range turns {
		m := moment{Turn: turn, Took: turn.Ended.Sub(turn.Started), Well: turn.Class == string(outcome.Done)}
		gap := max(turn.Started.Sub(last), 0)
		shown := min(gap, longest)
		if before.Transient() {
			m.Waited, m.WaitFrom, m.WaitLong = gap, float64(at), float64(shown)
		}
		at, cut = at+shown, cut+gap-shown
		m.At, m.For = float64(at), float64(m.Took)
		at += m.Took
		if turn.Ended.After(last) {
			last = turn.Ended
		}
		before = outcome.Outcome(turn.Class)
		t.Rows = append(t.Rows, m)
	}
	if p.Record != nil && p.Record.Decided.After(last) {
		rest := p.Record.Decided.Sub(last)
		last, at, cut = p.Record.Decided, at+min(rest, longest), cut+max(rest-longest, 0)
	}
	for i := range t.Rows {
		m := &t.Rows[i]
		for _, n := range []*float64{&m.WaitFrom, &m.WaitLong, &m.At, &m.For} {
			*n = 1000 * *n / max(float64(at), 1)
		}
		m.For = max(m.For, 2)
	}
	if took, _, unknown := p.worked(); took > 0 {
		t.Worked = partly(span(took), false, unknown)
	}
	t.Whole = span(last.Sub(first))
	if cut > 0 {
		t.Cut = span(cut)
	}
	return t
}

// plot is a table of sums with a bar each.
type plot struct {
	Name string
	Rows []plotRow
}

// plotRow is a sum, and the segments of its bar in thousandths of the longest bar.
type plotRow struct {
	ledger.Group
	Bar []segment
}

type segment struct {
	Kind    string
	At, For float64
}

// Plots returns the sums by role, by model and by iteration.
func (p Page) Plots() []plot {
	return []plot{plotOf("Role", p.Spent, ledger.ByRole), plotOf("Model", p.Spent, ledger.ByModel),
		plotOf("Iteration", p.Spent, ledger.ByIter)}
}

// plotOf returns the groups of an account, with a total if there are several.
func plotOf(name string, a ledger.Account, by ledger.By) plot {
	p, most := plot{Name: name}, int64(1)
	for _, g := range a.By[by] {
		most = max(most, g.Input.Known+g.Candidates.Known+g.Thoughts.Known)
	}
	for _, g := range a.By[by] {
		if by == ledger.ByIter {
			g.Key = g.Key[strings.IndexByte(g.Key, '/')+1:]
		}
		p.Rows = append(p.Rows, plotRow{g, barOf(g.Sum, most)})
	}
	if len(p.Rows) > 1 {
		p.Rows = append(p.Rows, plotRow{ledger.Group{Key: "all", Sum: a.All}, nil})
	}
	return p
}

// barOf returns the bar of a sum of tokens. Cached tokens are part of the input.
func barOf(s ledger.Sum, most int64) (bar []segment) {
	at, cached := 0.0, min(s.Cached.Known, s.Input.Known)
	for _, part := range []struct {
		kind string
		n    int64
	}{{"cached", cached}, {"input", s.Input.Known - cached}, {"output", s.Candidates.Known}, {"thoughts",
		s.Thoughts.Known}} {
		if long := 1000 * float64(part.n) / float64(most); long > 0 {
			bar = append(bar, segment{part.kind, at, long})
			at += long
		}
	}
	return bar
}

// matrix has the result of each contract in each iteration.
type matrix struct {
	Columns []audit.Record
	Rounds  []roundSpan // of the columns
	Rows    []row
	Cards   []*card
	Left    int // number of the oldest iterations, which are left out
}

// roundSpan is a round and its number of columns.
type roundSpan struct{ Round, Columns int }

type row struct {
	audit.Clause
	Cells []cell
}

type cell struct {
	Step int
	Mark string
	Card *card // nil if the contract did not exist
}

// card is the evidence for a contract. Iterations with the same evidence share a card.
type card struct {
	ID, Contract, Says, Mark         string
	Steps                            []int
	Facts                            []fact
	Request, Answer, Input, Observed string
	Ran                              bool   // the request is a run of a program
	Cut                              string // where to find the rest
}

// Matrix has the contracts of the newest iteration first, then those that were removed.
func (p Page) Matrix() (m matrix) {
	m.Columns = p.Judged()
	m.Left = max(len(m.Columns)-maxColumns, 0)
	m.Columns = m.Columns[m.Left:]
	for _, r := range m.Columns {
		if last := len(m.Rounds) - 1; last >= 0 && m.Rounds[last].Round == r.Round {
			m.Rounds[last].Columns++
		} else {
			m.Rounds = append(m.Rounds, roundSpan{r.Round, 1})
		}
	}
	room, at := allowance(maxEvidence), map[string]int{} // rows of contracts
	for i, r := range slices.Backward(m.Columns) {
		for _, c := range r.Contracts {
			k, known := at[c.ID]
			if !known {
				k = len(m.Rows)
				at[c.ID], m.Rows = k, append(m.Rows, row{c.Clause, make([]cell, len(m.Columns))})
			}
			cells := m.Rows[k].Cells
			cells[i] = cell{r.Step, markOf(c, r), m.cardOf(c, r, cells[i:], p.Seen[r.Step], &room)}
		}
	}
	return m
}

// markOf returns the result of a contract, with weak passes marked.
func markOf(c audit.Contract, r audit.Record) string {
	if c.Result == audit.Pass && (c.Is == "weak" || c.Is == "not read") {
		return c.Is
	}
	return mark(c, r)
}

// cardOf returns the card of a contract in an iteration, or a later iteration's card with the same
// content.
func (m *matrix) cardOf(c audit.Contract, r audit.Record, later []cell, seen Exchanges, room *allowance) *card {
	k := card{Ran: r.Kind == "command", Contract: line(c.ID), Says: line(c.Says), Mark: markOf(c, r), Steps: []int{r.Step}}
	for _, l := range proof(c, r) {
		name, value, _ := strings.Cut(l, ": ")
		k.Facts = append(k.Facts, fact{name, line(value)})
	}
	x, saw := seen[c.Witness]
	has := func(l cell) bool { return l.Card != nil }
	if next := slices.IndexFunc(later, has); next >= 0 && (!saw || c.Result == audit.Pass) {
		was := later[next].Card
		if was.Mark == k.Mark && slices.Equal(was.Facts, k.Facts) && c.Input+c.Observed == "" && was.Input+was.Observed == "" {
			was.Steps = append([]int{r.Step}, was.Steps...)
			return was
		}
	}
	k.ID = fmt.Sprintf("evidence-%d", len(m.Cards)+1)
	whole := true
	fit := func(text string, most int) (kept string) {
		if whole {
			kept, whole = room.fit(text, most)
		}
		return kept
	}
	input, observed := c.Input, c.Observed
	if e, ok := given(c, r); ok {
		input, observed = e.Input, e.Observed
		k.Facts = append(k.Facts, fact{"the entry for the Builder",
			line(e.Spec) + ", with the input and the observation below"})
	}
	k.Input, k.Observed = fit(input, maxBlock), fit(observed, maxBlock)
	if saw {
		k.Request, k.Answer = fit(x[0], maxBody), fit(x[1], maxBody)
	}
	if !whole {
		k.Cut = fmt.Sprintf("The rest does not fit on this page: abl report %d --step %d", r.Phase, r.Step)
	}
	m.Cards = append(m.Cards, &k)
	return &k
}
