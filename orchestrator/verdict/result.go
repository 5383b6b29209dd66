package verdict

import (
	"fmt"
	"slices"
	"strings"
)

// maxProblems bounds what a hostile file can make abl say.
const maxProblems = 50

func (p *parser) problem(line int, text string) {
	if len(p.problems) < maxProblems {
		p.problems = append(p.problems, Problem{Line: line, Text: text})
	}
}

// finish ends the entry in the making, if there is one.
func (p *parser) finish() {
	d := p.open
	p.open = nil
	if d == nil {
		return
	}
	if missing := d.missing(); len(missing) > 0 {
		p.problem(d.line, "the entry has no "+strings.Join(missing, " and no "))
		return
	}
	if len(p.entries) == MaxEntries {
		p.surplus++
		return
	}
	p.entries = append(p.entries, d.entry())
}

func (p *parser) result() Result {
	r := Result{Kind: Fail, Entries: p.entries}
	if len(p.entries) == 0 {
		r.Kind = Malformed
	}
	if p.surplus > 0 {
		p.problem(p.entries[MaxEntries-1].Line,
			fmt.Sprintf("%d entries after the first %d were left out", p.surplus, MaxEntries))
	}
	if p.stray > 0 {
		p.problem(p.stray, "text outside the entries is not read")
	}
	if r.Kind == Malformed && len(p.problems) == 0 {
		p.problem(1, "there is no entry: an entry has SPEC:, INPUT: and OBSERVED:")
	}
	slices.SortStableFunc(p.problems, func(a, b Problem) int { return a.Line - b.Line })
	r.Problems = p.problems
	return r
}
