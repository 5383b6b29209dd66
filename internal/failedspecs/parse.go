package failedspecs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"abl/internal/spec"
)

// parser walks over the lines of a file and builds at most one entry at a time.
type parser struct {
	Result
	lines   []string
	open    *draft
	example bool // the text before announced an example
	stray   int  // first line of text outside of entries, from 1
	surplus int  // number of entries beyond MaxEntries
}

// endOfBlock replaces the fence that ends a block around entries.
const endOfBlock = "\x00"

func (p *parser) run() {
	closes := fences(p.lines)
	for i := 0; i < len(p.lines); i++ {
		line := p.lines[i]
		l, labelled := labelOf(line)
		end, fenced := closes[i]
		switch {
		case line == endOfBlock:
			p.finish(false)
			p.example = false
		case strings.TrimSpace(line) == "":
			if p.open != nil {
				p.open.blanks++
			}
		case labelled && p.accepts(l):
			p.label(i, l)
			if fenced && p.open != nil {
				i = p.block(i, end, l.rest)
			}
		case fenced:
			i = p.block(i, end, line)
		default:
			p.text(i, line)
		}
	}
	p.finish(true)
}

// accepts reports whether a label begins a field. A label that is indented more than the previous
// field is part of that field's value. One more column is tolerated, and after SPEC three more,
// because authors align bullets loosely.
func (p *parser) accepts(l label) bool {
	d := p.open
	switch {
	case d == nil:
		return true
	case d.of[l.field].given:
		return l.lead <= d.of[l.field].lead+1
	case d.last == specField:
		return l.lead <= d.of[specField].col+3
	}
	return l.lead <= d.of[d.last].lead+1
}

// label begins a field, and with SPEC an entry. A second INPUT or OBSERVED continues the first one.
// After a complete entry whose last field was another one, it begins another observation of the
// same contract.
func (p *parser) label(i int, l label) {
	if l.field == specField {
		p.finish(false)
		p.open = &draft{line: i + 1}
	}
	d := p.open
	if d == nil {
		p.problem(i+1, fmt.Sprintf("%s without a SPEC before it", l.field))
		return
	}
	if d.of[l.field].given && d.complete() && d.last != l.field {
		p.finish(false)
		d = &draft{line: d.line, further: true, of: [3]value{d.of[specField]}}
		p.open = d
	}
	if !d.of[l.field].given {
		d.of[l.field] = value{label: l, given: true}
	}
	d.last, d.blanks = l.field, 0
	if _, _, fence := spec.Fence(l.rest); !fence {
		d.add(l.rest)
	}
}

var (
	// example matches text that announces invented entries.
	example = regexp.MustCompile(`(?i)\b(?:formats?|examples?|templates?|samples?)\b`)

	// structured matches the beginning of an entry in a table or a block quote.
	structured = regexp.MustCompile("^ *[>|][ >|*_#`-]*(?i:spec)\\b")

	ruleLine = regexp.MustCompile(`^ *(?:-{3,}|\*{3,}|_{3,}|={3,}|(?:[-*_] ){2,}[-*_]) *$`)
	boldLine = regexp.MustCompile(`^ *(?:\*\*[^*]+\*\*|__[^_]+__):? *$`)
)

// decoration reports whether a line has no content: headings, titles in bold, rules, a fence
// without its counterpart.
func decoration(line string) bool {
	_, _, fence := spec.Fence(line)
	return fence || ruleLine.MatchString(line) || boldLine.MatchString(line) || strings.HasPrefix(strings.TrimSpace(line), "#")
}

// text reads a line that is neither a label nor a code block.
func (p *parser) text(i int, line string) {
	d := p.open
	if d != nil && d.continues(line) {
		d.add(line)
		return
	}
	if structured.MatchString(line) {
		p.problem(i+1, "an entry in a table or a block quote is ignored: write SPEC: at the beginning of a line")
	}
	p.example = example.MatchString(line) || p.example && !strings.HasPrefix(strings.TrimSpace(line), "#")
	if p.stray == 0 && !decoration(line) {
		p.stray = i + 1
	}
}

// finish ends the current entry, if there is one.
func (p *parser) finish(last bool) {
	d := p.open
	p.open = nil
	if d == nil {
		return
	}
	d.trim(last)
	e, missing := d.entry()
	n := len(p.Entries)
	switch {
	case len(missing) == len(fieldNames) && d.of[specField].bare:
		// "# Spec" was the title of the file.
	case len(missing) > 0 && d.further && n > 0 && p.Entries[n-1].Line == e.Line: // it continues the entry before
		before := &p.Entries[n-1]
		before.Input, before.Observed = before.Input+"\n"+e.Input, before.Observed+"\n"+e.Observed
		*before = Sanitize(*before)
	case len(missing) > 0:
		p.problem(e.Line, "the entry has no "+strings.Join(missing, " and no "))
		if len(p.Incomplete) < MaxEntries {
			p.Incomplete = append(p.Incomplete, e)
		}
	case n == MaxEntries:
		p.surplus++
	default:
		p.Entries = append(p.Entries, e)
	}
}

// maxProblems limits the problems of a hostile file.
const maxProblems = 50

func (p *parser) problem(line int, text string) {
	if len(p.Problems) < maxProblems {
		p.Problems = append(p.Problems, Problem{Line: line, Text: text})
	}
}

// result completes the problems and returns the parsed file.
func (p *parser) result() Result {
	p.Kind = Fail
	if len(p.Entries) == 0 {
		p.Kind = Malformed
		if len(p.Incomplete) == 0 {
			p.problem(1, "there is no entry: lines that begin with SPEC:, INPUT: and OBSERVED:, in UTF-8")
		}
	}
	if p.surplus > 0 {
		p.problem(p.Entries[MaxEntries-1].Line, fmt.Sprintf("%d entries after the first %d are ignored", p.surplus, MaxEntries))
	}
	if p.stray > 0 {
		p.problem(p.stray, "text outside of the entries is ignored")
	}
	slices.SortStableFunc(p.Problems, func(a, b Problem) int { return a.Line - b.Line })
	return p.Result
}

// draft is an entry under construction.
type draft struct {
	line    int      // of its SPEC
	further bool     // another observation of the contract of the entry before
	of      [3]value // of SPEC, INPUT and OBSERVED
	last    field    // the field that the next lines belong to
	blanks  int      // number of blank lines after its last line
}

// value is the text of a field under construction.
type value struct {
	label
	given  bool // the field has a label
	lines  []string
	filled bool // it has more than blank lines and fences
}

// continues reports whether a line without a label continues the current value. A response may
// contain blank lines. The text of a contract does not.
func (d *draft) continues(line string) bool {
	v := d.of[d.last]
	return d.last != specField || d.blanks == 0 || indent(line) > v.lead || len(v.lines) == 0
}

func (d *draft) add(line string) {
	v := &d.of[d.last]
	if len(v.lines) > 0 {
		v.lines = append(v.lines, make([]string, d.blanks)...)
	} else if strings.TrimSpace(line) == "" {
		return
	}
	_, _, fenced := spec.Fence(line)
	v.filled = v.filled || !fenced && strings.TrimSpace(line) != ""
	v.lines = append(v.lines, line)
	d.blanks = 0
}

// trim removes titles and rules between two entries from the last value. At the end of the file a
// title is text.
func (d *draft) trim(last bool) {
	v, lead := &d.of[d.last], d.of[specField].lead
	for n := len(v.lines); n > 1; n = len(v.lines) {
		line := v.lines[n-1]
		if line != "" && (!decoration(line) || last && !ruleLine.MatchString(line) || indent(line) > lead) {
			return
		}
		v.lines = v.lines[:n-1]
	}
}

// complete reports whether all fields have text. It is called for every line, so it does not read
// the text.
func (d *draft) complete() bool {
	return !slices.ContainsFunc(d.of[:], func(v value) bool { return !v.filled })
}

// entry returns the entry in normal form and the names of its missing fields.
func (d *draft) entry() (e Entry, missing []string) {
	e.Line = d.line
	for i, into := range []*string{&e.Spec, &e.Input, &e.Observed} {
		*into = normalForm(d.of[i].lines)
		if blank.MatchString(*into) {
			missing = append(missing, fieldNames[i])
		}
	}
	if len(missing) == 0 && e.isFiller() {
		missing = fieldNames[:]
	}
	return e, missing
}
