package verdict

import (
	"fmt"
	"strings"
)

// parser walks over the lines of a file with at most one entry in the making.
type parser struct {
	lines    []string
	entries  []Entry
	problems []Problem
	open     *draft
	stray    int          // first line of text outside entries, 0 for none
	surplus  int          // entries beyond MaxEntries
	unclosed map[byte]int // by fence mark: a fence of this size has no end
}

func newParser(lines []string) *parser {
	p := &parser{lines: lines, unclosed: map[byte]int{}}
	if first, last, ok := wrapped(lines); ok {
		p.lines[first], p.lines[last] = "", ""
	}
	return p
}

// wrapped reports whether one code block holds the whole file, as chat models
// like to write it, and the lines of its fences. Fences nest here: a model that
// wraps its answer does not care for those inside.
func wrapped(lines []string) (first, last int, ok bool) {
	for first = 0; strings.TrimSpace(lines[first]) == ""; first++ {
		if first == len(lines)-1 {
			return 0, 0, false
		}
	}
	for last = len(lines) - 1; strings.TrimSpace(lines[last]) == ""; last-- {
	}
	depth := 0
	for i := first; i <= last; i++ {
		f, isFence := fenceOf(lines[i])
		switch {
		case isFence && f.info == "" && depth > 0:
			depth--
		case isFence:
			depth++
		}
		if depth == 0 && i < last {
			return 0, 0, false
		}
	}
	return first, last, depth == 0 && last > first
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
		if l, ok := labelOf(line); ok && p.accepts(l) {
			i = p.label(i, l, quoted)
			continue
		}
		p.text(i, line)
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

// block takes a code block: the lines of one inside an entry belong to the
// field before it, one outside is left out. Nothing in it is a label. It
// returns the last line taken.
func (p *parser) block(i int, f fence) int {
	end := p.end(i, f)
	if end < 0 {
		return i
	}
	for j := i + 1; j < end; j++ {
		line, _ := p.view(j)
		if p.open != nil {
			p.open.add(line)
		} else if _, ok := labelOf(line); ok {
			p.problem(j+1, "an entry inside a code block is not read")
			break
		}
	}
	return end
}

// end finds the line that closes a fence, or -1.
func (p *parser) end(i int, f fence) int {
	if size, known := p.unclosed[f.mark]; known && f.size >= size {
		return -1
	}
	for j := i + 1; j < len(p.lines); j++ {
		if line, _ := p.view(j); f.closedBy(line) {
			return j
		}
	}
	p.unclosed[f.mark] = f.size
	return -1
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
		p.open = &draft{line: i + 1, lead: l.lead, quoted: quoted}
	case p.open == nil:
		p.problem(i+1, fmt.Sprintf("%s without a SPEC before it", l.field))
		return i
	case p.open.fields[l.field] != nil:
		before := *p.open
		p.finish()
		p.open = &draft{line: before.line, lead: before.lead, quoted: before.quoted}
		p.open.fields[specField] = before.fields[specField]
	}
	p.open.start(l)
	if f, ok := fenceOf(l.rest); ok {
		return p.block(i, f)
	}
	p.open.add(l.rest)
	return i
}

func (p *parser) text(i int, line string) {
	d := p.open
	switch {
	case d != nil && p.separator(i, line):
	case d != nil && d.takes(line):
		d.add(line)
	case p.stray == 0 && !decoration(line):
		p.stray = i + 1
	}
}

// separator recognises a rule between two entries; "---" elsewhere is text.
func (p *parser) separator(i int, line string) bool {
	if !ruleLine.MatchString(line) || indent(line) > p.open.lead {
		return false
	}
	for i++; i < len(p.lines); i++ {
		next, _ := p.view(i)
		if strings.TrimSpace(next) == "" {
			continue
		}
		l, ok := labelOf(next)
		return ok && l.field == specField
	}
	return true
}
