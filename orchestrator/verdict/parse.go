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

	closes  map[int]int  // by the line of a fence: that of the one that closes it
	specs   []int        // the lines with a SPEC
	ends    map[int]bool // the lines with which a block around entries ended
	example bool         // the text before calls what follows an example
}

// lookahead is what was found ahead of the lines before line at: the next one
// that is not empty and no decoration begins an entry or a field, or there is none.
type lookahead struct {
	at                 int
	entry, field, last bool
}

func newParser(lines []string) *parser {
	closes, specs := nesting(lines)
	return &parser{lines: lines, unclosed: map[byte]int{}, closes: closes, specs: specs, ends: map[int]bool{}}
}

func (p *parser) run() {
	for i := 0; i < len(p.lines); i++ {
		if p.ends[i] {
			p.finish()
		}
		line := p.lines[i]
		if strings.TrimSpace(line) == "" {
			p.blank()
			continue
		}
		if f, ok := fenceOf(line); ok {
			if !p.unwrap(i) {
				i = p.block(i, f)
			}
			continue
		}
		if last, ok := p.comment(i, line); ok {
			i = last
			continue
		}
		if l, ok := labelOf(line); ok && p.accepts(l) {
			i = p.label(i, l)
			continue
		}
		p.text(i, line)
	}
	p.finish()
}

func (p *parser) blank() {
	if p.open != nil {
		p.open.blanks++
	}
}

// accepts decides whether a label opens a field or is part of a value: what
// stands deeper than the label before it is a value. Two columns would still be
// sloppy bullets, so the fields right after SPEC may stand three deeper.
func (p *parser) accepts(l label) bool {
	d := p.open
	switch {
	case d == nil:
		return true
	case l.field == specField:
		return l.lead <= d.lead+1
	case d.fields[l.field] != nil:
		return l.lead <= d.fields[l.field].lead+1
	case d.last == specField:
		return l.lead <= d.fields[specField].col+3
	}
	return l.lead <= d.fields[d.last].lead+1
}

// label opens a field, and with SPEC an entry. A second INPUT or OBSERVED goes on
// with the first; after a complete entry, where another field came last, it is a
// further observation of the same contract.
func (p *parser) label(i int, l label) int {
	switch d := p.open; {
	case l.field == specField:
		p.finish()
		p.open = &draft{line: i + 1, lead: l.lead, bare: l.bare}
		p.open.start(l)
	case d == nil:
		p.problem(i+1, fmt.Sprintf("%s without a SPEC before it", l.field))
		return i
	case d.fields[l.field] == nil:
		d.start(l)
	case d.complete() && d.last != l.field:
		p.further()
		p.open.start(l)
	default:
		d.resume(l)
	}
	if f, ok := fenceOf(l.rest); ok {
		return p.block(i, f)
	}
	p.open.add(l.rest)
	return i
}

// further begins another observation of the contract.
func (p *parser) further() {
	d := p.open
	if d.before != nil {
		p.keep(d.before)
		d.before = nil
	}
	p.open = &draft{line: d.line, lead: d.lead, before: d}
	p.open.fields[specField] = d.fields[specField]
}

// text takes a line that is none of the above.
func (p *parser) text(i int, line string) {
	d := p.open
	switch {
	case d != nil && p.separator(i, line):
		return
	case d != nil && d.takes(line):
		if !d.complete() && d.near == "" {
			d.nearLine = i + 1
			d.near, d.meant = nearMiss(line)
		}
		d.add(line)
		return
	case structured.MatchString(line):
		p.problem(i+1, "an entry in a table or a block quote is not read: write SPEC: at the beginning of a line")
	}
	heading := strings.HasPrefix(strings.TrimSpace(line), "#")
	p.example = example.MatchString(line) || p.example && !heading
	if word, meant := nearMiss(line); meant != "" && (d == nil || !d.complete()) {
		p.problem(i+1, fmt.Sprintf("%q is no label, which are SPEC, INPUT and OBSERVED; did you mean %s?", word, meant))
	}
	if p.stray == 0 && !decoration(line) {
		p.stray = i + 1
	}
}

// separator recognises a rule or a title between two entries; elsewhere "---"
// and "# x" are text.
func (p *parser) separator(i int, line string) bool {
	if !decoration(line) || indent(line) > p.open.lead {
		return false
	}
	a := p.look(i + 1)
	return a.entry || a.field && p.open.complete() || a.last && ruleLine.MatchString(line)
}

// look looks for the next statement from line i on.
func (p *parser) look(i int) lookahead {
	if i < p.ahead.at {
		return p.ahead
	}
	for ; i < len(p.lines); i++ {
		next := p.lines[i]
		l, ok := labelOf(next)
		if !ok && (strings.TrimSpace(next) == "" || decoration(next)) {
			continue
		}
		p.ahead = lookahead{at: i, entry: ok && l.field == specField, field: ok}
		return p.ahead
	}
	p.ahead = lookahead{at: i, last: true}
	return p.ahead
}
