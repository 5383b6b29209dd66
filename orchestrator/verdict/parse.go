package verdict

import (
	"fmt"
	"strings"
)

// parser walks over the lines of a file with at most one entry in the making.
type parser struct {
	lines      []string
	entries    []Entry
	incomplete []Entry
	problems   []Problem
	fenced     []int // lines with which code blocks inside entries begin
	open       *draft
	stray      int          // first line of text outside entries, 0 for none
	surplus    int          // entries beyond MaxEntries
	unclosed   map[byte]int // by fence mark: a fence of this size has no end
	endless    bool         // no comment ends any more
	ahead      lookahead
}

// lookahead is what was found ahead of the lines before line at: the next one
// that is not empty and no decoration begins an entry, or there is none.
type lookahead struct {
	at          int
	entry, last bool
}

func newParser(lines []string) *parser {
	unwrap(lines)
	return &parser{lines: lines, unclosed: map[byte]int{}}
}

func (p *parser) run() {
	for i := 0; i < len(p.lines); i++ {
		line, quoted := p.view(i)
		if strings.TrimSpace(line) == "" {
			p.blank()
			continue
		}
		if f, ok := fenceOf(line); ok {
			i = p.block(i, f)
			continue
		}
		if last, ok := p.comment(i, line); ok {
			i = last
			continue
		}
		if l, ok := labelOf(line); ok && p.accepts(l) {
			i = p.label(i, l, quoted)
			continue
		}
		i = p.text(i, line)
	}
	p.finish()
}

// view is a line without the marks of a block quote, as long as no entry is in
// the making that was not quoted itself: there ">" belongs to the text.
func (p *parser) view(i int) (string, bool) {
	if p.open == nil || p.open.quoted {
		return unquote(p.lines[i])
	}
	return p.lines[i], false
}

func (p *parser) blank() {
	if p.open != nil {
		p.open.blanks++
	}
}

// accepts decides whether a label opens a field or is part of a value: what
// stands deeper than the label before it is a value. Two columns would still be
// sloppy bullets, so the fields right after SPEC may stand three deeper. Rows of
// a table go with rows.
func (p *parser) accepts(l label) bool {
	d := p.open
	switch {
	case d == nil:
		return true
	case l.row && !d.row && (l.field != specField || d.blanks == 0):
		return false
	case l.field == specField:
		return l.lead <= d.lead+1
	case d.fields[l.field] != nil:
		return d.complete() && l.lead <= d.fields[l.field].lead+1
	case d.last == specField:
		return l.lead <= d.fields[specField].col+3
	}
	return l.lead <= d.fields[d.last].lead+1
}

// label opens a field, and with SPEC an entry. A second INPUT or OBSERVED after
// a complete entry is a further observation of the same contract.
func (p *parser) label(i int, l label, quoted bool) int {
	switch {
	case l.field == specField:
		p.finish()
		p.open = &draft{line: i + 1, lead: l.lead, quoted: quoted, row: l.row, bare: l.bare}
	case p.open == nil:
		p.problem(i+1, fmt.Sprintf("%s without a SPEC before it", l.field))
		return i
	case p.open.fields[l.field] != nil:
		before := *p.open
		p.finish()
		p.open = &draft{line: before.line, lead: before.lead, quoted: before.quoted, row: before.row}
		p.open.fields[specField] = before.fields[specField]
	}
	p.open.start(l)
	if f, ok := fenceOf(l.rest); ok {
		return p.block(i, f)
	}
	p.open.add(l.rest)
	return i
}

// text takes a line that is none of the above, or a table that begins with it,
// and returns the last line taken.
func (p *parser) text(i int, line string) int {
	d := p.open
	switch {
	case d != nil && p.separator(i, line):
		return i
	case d != nil && d.takes(line):
		if !d.complete() && d.near == "" {
			d.nearLine = i + 1
			d.near, d.meant = nearMiss(line)
		}
		d.add(line)
		return i
	}
	if last, ok := p.table(i, line); ok {
		return last
	}
	if word, meant := nearMiss(line); meant != "" && (d == nil || !d.complete()) {
		p.problem(i+1, fmt.Sprintf("%q is no label, which are SPEC, INPUT and OBSERVED; did you mean %s?", word, meant))
	}
	if p.stray == 0 && !decoration(line) {
		p.stray = i + 1
	}
	return i
}

// separator recognises a rule or a title between two entries; elsewhere "---"
// and "# x" are text.
func (p *parser) separator(i int, line string) bool {
	if !decoration(line) || indent(line) > p.open.lead {
		return false
	}
	a := p.look(i + 1)
	return a.entry || a.last && ruleLine.MatchString(line)
}

// look looks for the next statement from line i on.
func (p *parser) look(i int) lookahead {
	if i < p.ahead.at {
		return p.ahead
	}
	for ; i < len(p.lines); i++ {
		next, _ := p.view(i)
		if strings.TrimSpace(next) == "" || decoration(next) {
			continue
		}
		l, ok := labelOf(next)
		p.ahead = lookahead{at: i, entry: ok && l.field == specField}
		return p.ahead
	}
	p.ahead = lookahead{at: i, last: true}
	return p.ahead
}
