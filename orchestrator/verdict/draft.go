package verdict

import "strings"

// draft is an entry in the making.
type draft struct {
	line   int
	lead   int // of its SPEC
	quoted bool
	row    bool // it began in a row of a table
	bare   bool // its SPEC stood alone as a title
	fields [3]*value
	last   field // takes the lines that follow
	blanks int   // blank lines seen since its last line

	near, meant string // a line in it that nearly is a label, and which
	nearLine    int
}

// value is the text of a field in the making.
type value struct {
	lead   int
	col    int
	lines  []string
	filled bool // there is more than blank lines and fences
}

func (d *draft) start(l label) {
	d.fields[l.field] = &value{lead: l.lead, col: l.col}
	d.last, d.blanks = l.field, 0
}

// takes decides whether a line without a label goes on with the value before
// it: after a blank line only when it is indented, or when nothing came yet.
func (d *draft) takes(line string) bool {
	v := d.fields[d.last]
	return d.blanks == 0 || indent(line) > v.lead || len(v.lines) == 0
}

func (d *draft) add(line string) {
	v := d.fields[d.last]
	if len(v.lines) > 0 {
		v.lines = append(v.lines, make([]string, d.blanks)...)
	} else if strings.TrimSpace(line) == "" {
		return
	}
	_, fenced := fenceOf(line)
	v.filled = v.filled || !fenced && strings.TrimSpace(line) != ""
	v.lines = append(v.lines, line)
	d.blanks = 0
}

// complete is asked for every line, so it does not look at the text.
func (d *draft) complete() bool {
	for _, v := range d.fields {
		if v == nil || !v.filled {
			return false
		}
	}
	return true
}

func (d *draft) missing() []string {
	var names []string
	for f, v := range d.fields {
		if v == nil || void(normal(v.lines)) {
			names = append(names, field(f).String())
		}
	}
	return names
}

// entry is the draft in normal form, with whatever of it is there.
func (d *draft) entry() Entry {
	e := Entry{Line: d.line}
	for f, into := range []*string{&e.Spec, &e.Input, &e.Observed} {
		if v := d.fields[f]; v != nil {
			*into = normal(v.lines)
		}
	}
	return e
}
