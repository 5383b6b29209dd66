package verdict

import "strings"

// draft is an entry in the making.
type draft struct {
	line   int
	lead   int    // of its SPEC
	bare   bool   // its SPEC stood alone as a title
	before *draft // the observation of the same contract that it follows
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

// resume goes on with a field whose label stands there once more.
func (d *draft) resume(l label) { d.last, d.blanks = l.field, 0 }

// takes decides whether a line without a label goes on with the value before
// it. A raw answer has blank lines; the words of a contract have none.
func (d *draft) takes(line string) bool {
	v := d.fields[d.last]
	return d.last != specField || d.blanks == 0 || indent(line) > v.lead || len(v.lines) == 0
}

// merge gives a draft the values of one that was begun after it.
func (d *draft) merge(later *draft) {
	for _, f := range []field{inputField, observedField} {
		if v := later.fields[f]; v != nil {
			d.fields[f].lines = append(d.fields[f].lines, v.lines...)
		}
	}
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
	if len(names) == 0 && d.entry().hollow() {
		return fieldNames[:]
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
