package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"abl/internal/audit"
	"abl/internal/failedspecs"
	"abl/internal/witness"
	"abl/internal/wording"
)

// matrix is what each contract came to in each iteration.
type matrix struct {
	Columns []column
	Rows    []row
	Cards   []*card
	Left    int // iterations that are left out, the oldest
}

type column struct {
	Step, Round, Iteration int
	Mark                   string
}

type row struct {
	audit.Clause
	Cells []cell
}

type cell struct {
	column
	Mark string
	Card *card // nil where the contract was not there
}

// card is the evidence for a contract, which iterations share that came to the same.
type card struct {
	ID, Contract, Says, Mark string
	Steps                    []int
	Facts                    []fact
	Input, Observed          string
	Seen                     *exchange
	Cut                      string // where the rest is
}

// exchange is a request and its answer, as the witness saw them.
type exchange struct{ Request, Sent, Status, Headers, Got string }

// matrixOf has the contracts of the newest iteration first, then those that went.
func matrixOf(p Page) (m matrix) {
	records, room := p.records(), allowance(maxEvidence)
	m.Left = max(len(records)-maxColumns, 0)
	records = records[m.Left:]
	of := map[string][]cell{} // by contract
	for i, r := range slices.Backward(records) {
		col := column{Step: r.Step, Round: r.Round, Iteration: r.Iteration, Mark: r.Verdict}
		m.Columns = append([]column{col}, m.Columns...)
		for _, c := range r.Contracts {
			cells := of[c.ID]
			if cells == nil {
				m.Rows = append(m.Rows, row{Clause: c.Clause})
				cells = make([]cell, len(records))
				of[c.ID] = cells
			}
			cells[i] = cell{col, markOf(c, r), m.cardOf(c, r, cells[i:], p.Seen[r.Step], &room)}
		}
	}
	for i := range m.Rows {
		m.Rows[i].Cells = of[m.Rows[i].ID]
		for k := range m.Columns {
			m.Rows[i].Cells[k].column = m.Columns[k]
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
	if c.Witness == "" && len(c.Runs) > 0 && !c.Unread {
		k.Facts = append(k.Facts, fact{"witnessed", "no exchange shows it"})
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
	var in, out bool
	k.Input, in = room.keep(c.Input, maxBlock)
	k.Observed, out = room.keep(c.Observed, maxBlock)
	if saw && in && out {
		k.Seen, in = exchangeOf(x, room)
	}
	if !in || !out {
		k.Cut = fmt.Sprintf("There is more, for which this page has no room: abl report %d --step %d", r.Phase, r.Step)
	}
	m.Cards = append(m.Cards, &k)
	return &k
}

// exchangeOf shows an exchange as far as there is room.
func exchangeOf(x witness.Exchange, room *allowance) (*exchange, bool) {
	var headers []string
	for _, name := range slices.Sorted(maps.Keys(x.Header)) {
		headers = append(headers, name+": "+strings.Join(x.Header[name], ", "))
	}
	shown := exchange{Request: line(x.Request()), Status: fmt.Sprint(x.Status)}
	var fits [3]bool
	shown.Headers, fits[0] = room.keep(strings.Join(headers, "\n"), maxBody)
	shown.Sent, fits[1] = room.keep(bodyText(x.Sent), maxBody)
	shown.Got, fits[2] = room.keep(bodyText(x.Got), maxBody)
	return &shown, fits[0] && fits[1] && fits[2]
}

// bodyText is a body where it is text.
func bodyText(b witness.Body) string {
	switch more := b.Bytes - int64(len(b.Begins)); {
	case b.Bytes == 0:
		return ""
	case len(b.Begins) == 0 || !utf8.Valid(b.Begins) && more == 0:
		return fmt.Sprintf("%s bytes, which are no text or were not kept", grouped(b.Bytes))
	case more > 0:
		return strings.ToValidUTF8(string(b.Begins), "�") + fmt.Sprintf("\n… %s bytes more", grouped(more))
	}
	return string(b.Begins)
}

// iteration is a record besides its contracts.
type iteration struct {
	audit.Record
	Mark, Counted string
	News          []string
	Besides       []failedspecs.Entry
	Shown         []fact // replays
	More          int    // of them, not shown
}

func iterationOf(r audit.Record) iteration {
	const most = 40
	it := iteration{Record: r, Mark: r.Verdict, Counted: counted(r), News: news(r), Besides: besides(r)}
	for i, run := range r.Replays {
		if i == most {
			it.More = len(r.Replays) - most
			break
		}
		it.Shown = append(it.Shown, fact{line(run.Name), line(cameTo(run))})
	}
	for i := range it.Besides {
		e := &it.Besides[i]
		e.Input, e.Observed = block(e.Input, ""), block(e.Observed, "")
	}
	return it
}

// guard is what the proofs of the boundary came to.
type guard struct {
	Boxes, Checks, Held int
	Rows                []guardRow
	Wrong               []string
}

type guardRow struct{ Step, Boxes, Checks, Held int }

// Whole says that all was looked at, and all held.
func (g guard) Whole() bool { return g.Boxes > 0 && g.Held == g.Checks && len(g.Wrong) == 0 }

func guardOf(p Page) (g guard) {
	for _, r := range p.records() {
		of := guardRow{Step: r.Step}
		look := func(what string, b *audit.Proof) {
			if b == nil {
				return
			}
			of.Boxes, of.Checks, of.Held = of.Boxes+1, of.Checks+b.Checks, of.Held+b.Held
			for _, why := range []string{b.Failed, b.Weak} {
				if why != "" {
					g.Wrong = append(g.Wrong, fmt.Sprintf("iteration %d, %s: %s", r.Step, line(what), line(why)))
				}
			}
			if b.Unheard {
				g.Wrong = append(g.Wrong, fmt.Sprintf("iteration %d, %s: nobody listened whether it reaches this machine", r.Step, line(what)))
			}
		}
		for _, c := range r.Calls {
			if c.Boundary == nil {
				g.Wrong = append(g.Wrong, fmt.Sprintf("iteration %d, call %s: no proof was kept", r.Step, line(c.Key)))
			}
			look("call "+c.Key, c.Boundary)
			look("app of call "+c.Key, c.App)
		}
		for _, run := range r.Replays {
			look("replay "+run.Name, run.Boundary)
			look("app of replay "+run.Name, run.App)
		}
		g.Rows = append(g.Rows, of)
		g.Boxes, g.Checks, g.Held = g.Boxes+of.Boxes, g.Checks+of.Checks, g.Held+of.Held
	}
	const most = 50
	if len(g.Wrong) > most {
		g.Wrong = append(g.Wrong[:most], wording.Count(len(g.Wrong)-most, "further place"))
	}
	return g
}

// hashes are what the verdict was drawn on, and by what.
func hashes(p Page) (all []fact) {
	put := func(name, value string) {
		if f := (fact{line(name), line(value)}); value != "" && !slices.Contains(all, f) {
			all = append(all, f)
		}
	}
	if r := p.Record; r != nil {
		put("Source", r.Commits.Source)
		put("Tests", r.Commits.Tests)
		put("Tag of both", r.Commits.Tag)
		for _, s := range r.Specs {
			put(s.File, "sha256:"+s.SHA256)
		}
		put("Project", r.Project)
		put("Audit record", fmt.Sprintf(".abl/reports/phase%d/step-%d.json, format %d", r.Phase, r.Step, r.Version))
	}
	for _, r := range p.records() {
		for _, c := range r.Calls {
			put("Agent", strings.TrimSpace(c.Role+": "+c.Agent+" "+c.Model))
			for _, b := range []*audit.Proof{c.Boundary, c.App} {
				if b != nil {
					put("Image", b.Image)
				}
			}
		}
	}
	put("Page made by", "abl "+p.Abl)
	return all
}
