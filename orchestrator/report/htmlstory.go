package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"abl/internal/ledger"
	"abl/internal/outcome"
	"abl/internal/wording"
	"abl/roles/agent"
)

// diffs is what an iteration changed, as the page shows it.
type diffs struct {
	Change
	Added, Removed int
	Shown          []fileDiff
	Left           int // files that are left out
}

type fileDiff struct {
	Path, Note     string
	Added, Removed int
	Parts          []part
	Cut            bool
}

// part is a run of lines of one kind: ins, del, at or same.
type part struct{ Kind, Text string }

// diffsOf leaves out what there is no room for, the oldest first.
func diffsOf(p Page) (all []diffs) {
	room := allowance(maxDiffs)
	for _, c := range slices.Backward(p.Changes) {
		d := diffs{Change: c, Left: max(len(c.Files)-maxFiles, 0)}
		for _, f := range c.Files[:len(c.Files)-d.Left] {
			shown := fileDiff{Path: line(f.Path), Note: line(f.Note)}
			for l := range strings.Lines(f.Diff) {
				shown.Added += tally(l[0] == '+')
				shown.Removed += tally(l[0] == '-')
			}
			text, fits := room.keep(f.Diff, maxOneDiff)
			shown.Cut = !fits || strings.HasSuffix(text, wording.CutMark)
			shown.Parts = partsOf(text)
			d.Added, d.Removed, d.Shown = d.Added+shown.Added, d.Removed+shown.Removed, append(d.Shown, shown)
		}
		all = append(all, d)
	}
	slices.Reverse(all)
	return all
}

// tally is 1 for what is so.
func tally(is bool) int {
	if is {
		return 1
	}
	return 0
}

// partsOf takes a unified diff apart.
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

// talk is what a call said and did, as the page shows it.
type talk struct {
	Turn
	Actions int
	Shown   []message
	Left    int // messages that are left out, the oldest
}

// message is a text, or a call of a tool with what came back.
type message struct {
	Said, Did, Given string
	Back             []string
}

// talksOf shows the newest words of the newest calls where there is no room for all.
func talksOf(p Page) []talk {
	all, room := make([]talk, len(p.Turns)), allowance(maxTalk)
	for i, turn := range slices.Backward(p.Turns) {
		t := talk{Turn: turn}
		var back []string // what was returned to the call before
		for k, m := range slices.Backward(turn.Said) {
			text, fits := room.keep(m.Text, maxBlock)
			detail, too := room.keep(m.Detail, maxBlock)
			if !fits || !too {
				t.Left = k + 1
				break
			}
			switch m.Kind {
			case agent.Said:
				t.Shown = append(t.Shown, message{Said: text, Back: back})
				back = nil
			case agent.Called:
				t.Shown, t.Actions = append(t.Shown, message{Did: text, Given: detail, Back: back}), t.Actions+1
				back = nil
			default:
				if text = strings.TrimSpace(text + "\n" + detail); text != "" {
					back = append([]string{text}, back...)
				}
			}
		}
		slices.Reverse(t.Shown)
		all[i] = t
	}
	return all
}

// timeline has a line for each call, on a common axis in which long pauses are cut short.
type timeline struct {
	Whole string // from the first call to the last verdict
	Rows  []moment
	Cut   string // how much of it the axis leaves out
}

// moment is a call on the axis, in thousandths of it, with the wait before it.
type moment struct {
	Turn
	Took                        time.Duration
	WaitFrom, WaitLong, At, For float64
	Waited                      time.Duration // for a provider or the engine that was away
	Well                        bool
}

func timelineOf(p Page) (t timeline) {
	turns := slices.DeleteFunc(slices.Clone(p.Turns), func(t Turn) bool { return t.Started.IsZero() || t.Ended.Before(t.Started) })
	slices.SortStableFunc(turns, func(a, b Turn) int { return a.Started.Compare(b.Started) })
	if t.Whole = "unknown"; len(turns) == 0 {
		return t
	}
	first, last, busy := turns[0].Started, turns[0].Started, time.Duration(0)
	for _, turn := range turns {
		busy += turn.Ended.Sub(turn.Started)
	}
	longest := max(busy/2, 10*time.Second) // a night's pause must not make points of the calls
	at, cut, before := time.Duration(0), time.Duration(0), outcome.Done
	for _, turn := range turns {
		m := moment{Turn: turn, Took: turn.Ended.Sub(turn.Started), Well: turn.Class == string(outcome.Done)}
		gap := max(turn.Started.Sub(last), 0)
		if before.Transient() {
			m.Waited = gap
		}
		shown := min(gap, longest)
		if cut += gap - shown; m.Waited > 0 {
			m.WaitFrom, m.WaitLong = float64(at), float64(shown)
		}
		at += shown
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
	if t.Whole = span(last.Sub(first)); cut > 0 {
		t.Cut = span(cut)
	}
	return t
}

// plot is a table of sums with a bar each.
type plot struct {
	Name string
	Rows []plotRow
}

// plotRow is a sum, and the parts of its bar in thousandths of the longest.
type plotRow struct {
	Key string
	ledger.Sum
	Bar []segment
}

type segment struct {
	Kind    string
	At, For float64
}

// plotOf shows groups of rows, and all of them below where there are several.
func plotOf(name string, groups []ledger.Group, all ledger.Sum) plot {
	most := int64(1)
	for _, g := range groups {
		most = max(most, g.Total.Known, g.Input.Known+g.Candidates.Known+g.Thoughts.Known)
	}
	p := plot{Name: name}
	for _, g := range groups {
		key := g.Key
		if _, step, ok := strings.Cut(key, "/"); ok && name == "Iteration" {
			key = step
		}
		p.Rows = append(p.Rows, plotRow{line(cmp.Or(key, "unknown")), g.Sum, barOf(g.Sum, most)})
	}
	if len(groups) > 1 {
		p.Rows = append(p.Rows, plotRow{"all", all, nil})
	}
	return p
}

// barOf is a sum of tokens as the parts of a bar. What was cached is a part of the input.
func barOf(s ledger.Sum, most int64) (bar []segment) {
	at := 0.0
	for _, part := range []struct {
		kind string
		n    int64
	}{{"cached", min(s.Cached.Known, s.Input.Known)}, {"input", max(s.Input.Known-s.Cached.Known, 0)}, {"output", s.Candidates.Known}, {"thoughts", s.Thoughts.Known}} {
		if long := 1000 * float64(part.n) / float64(most); long > 0 {
			bar = append(bar, segment{part.kind, at, long})
			at += long
		}
	}
	return bar
}

// Command is what prints all of an iteration's change.
func (d diffs) Command() string {
	if d.From == "" {
		return fmt.Sprintf("show %.12s", d.To)
	}
	return fmt.Sprintf("diff %.12s %.12s", d.From, d.To)
}
