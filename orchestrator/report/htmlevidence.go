package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"abl/internal/audit"
	"abl/internal/witness"
)

// matrix is what each contract came to in each iteration.
type matrix struct {
	Columns []audit.Record
	Rows    []row
	Cards   []*card
	Left    int // iterations that are left out, the oldest
}

type row struct {
	audit.Clause
	Cells []cell
}

type cell struct {
	Step int
	Mark string
	Card *card // nil where the contract was not there
}

// card is the evidence for a contract, which iterations share that came to the same.
type card struct {
	ID, Contract, Says, Mark         string
	Steps                            []int
	Facts                            []fact
	Request, Answer, Input, Observed string
	Cut                              string // where the rest is
}

// Matrix has the contracts of the newest iteration first, then those that went.
func (p Page) Matrix() (m matrix) {
	m.Columns = p.Judged()
	m.Left = max(len(m.Columns)-maxColumns, 0)
	m.Columns = m.Columns[m.Left:]
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

// markOf is what a contract came to, a weak pass told from others.
func markOf(c audit.Contract, r audit.Record) string {
	if c.Result == audit.Pass && c.Is == "weak" {
		return "weak"
	}
	return mark(c, r)
}

// cardOf is the card of a contract in an iteration: a later one's where it says the same.
func (m *matrix) cardOf(c audit.Contract, r audit.Record, later []cell, seen map[string]witness.Exchange, room *allowance) *card {
	k := card{Contract: line(c.ID), Says: line(c.Says), Mark: markOf(c, r), Steps: []int{r.Step}}
	for _, l := range proof(c, r) {
		name, value, _ := strings.Cut(l, ": ")
		k.Facts = append(k.Facts, fact{name, line(value)})
	}
	x, saw := seen[c.Witness]
	if next := slices.IndexFunc(later, func(l cell) bool { return l.Card != nil }); next >= 0 && (!saw || c.Result == audit.Pass) {
		was := later[next].Card
		if was.Mark == k.Mark && slices.Equal(was.Facts, k.Facts) && c.Input+c.Observed == "" && was.Input+was.Observed == "" {
			was.Steps = append([]int{r.Step}, was.Steps...)
			return was
		}
	}
	k.ID = fmt.Sprintf("evidence-%d", len(m.Cards)+1)
	whole := true
	keep := func(text string, most int) (kept string) {
		if whole {
			kept, whole = room.keep(text, most)
		}
		return kept
	}
	k.Input, k.Observed = keep(c.Input, maxBlock), keep(c.Observed, maxBlock)
	if saw {
		k.Request, k.Answer = keep(x.Request()+"\n\n"+bodyText(x.Sent), maxBody), keep(answerText(x), maxBody)
	}
	if !whole {
		k.Cut = fmt.Sprintf("There is more, for which this page has no room: abl report %d --step %d", r.Phase, r.Step)
	}
	m.Cards = append(m.Cards, &k)
	return &k
}

// answerText is the answer of an exchange, its headers in order.
func answerText(x witness.Exchange) string {
	text := fmt.Sprintln(x.Status)
	for _, name := range slices.Sorted(maps.Keys(x.Header)) {
		text += name + ": " + strings.Join(x.Header[name], ", ") + "\n"
	}
	return text + "\n" + bodyText(x.Got)
}

// bodyText is a body where it is text.
func bodyText(b witness.Body) string {
	switch more := b.Bytes - int64(len(b.Begins)); {
	case b.Bytes == 0:
		return ""
	case len(b.Begins) == 0 || !utf8.Valid(b.Begins) && more == 0:
		return fmt.Sprintf("%d bytes, which are no text or were not kept", b.Bytes)
	case more > 0:
		return fmt.Sprintf("%s\n… %d bytes more", b.Begins, more)
	}
	return string(b.Begins)
}
