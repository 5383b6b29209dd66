package failedspecs

import (
	"slices"
	"strings"
)

// draft is an entry in the making.
type draft struct {
	line    int
	lead    int    // of its SPEC
	bare    bool   // its SPEC stood alone as a title
	further bool   // it is one more observation of the contract of the entry before
	of      fields // as far as they are there
	last    field  // takes the lines that follow
	blanks  int    // blank lines seen since its last line
}

// fields are the values of SPEC, INPUT and OBSERVED, nil without a label.
type fields [3]*value

// value is the text of a field in the making.
type value struct {
	lead   int // columns before its label
	col    int // of its label's first letter
	lines  []string
	filled bool // there is more than blank lines and fences
}

// takes decides whether a line without a label goes on with the value before
// it. A raw answer has blank lines; the words of a contract have none.
func (d *draft) takes(line string) bool {
	v := d.of[d.last]
	return d.last != specField || d.blanks == 0 || indent(line) > v.lead || len(v.lines) == 0
}

func (d *draft) add(line string) {
	v := d.of[d.last]
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

// trim takes the titles and rules between two entries off the last value; at the
// end of the file a title is text.
func (d *draft) trim(last bool) {
	v := d.of[d.last]
	for n := len(v.lines); n > 1; n = len(v.lines) {
		line := v.lines[n-1]
		if line != "" && (!decoration(line) || last && !ruleLine().MatchString(line) || indent(line) > d.lead) {
			return
		}
		v.lines = v.lines[:n-1]
	}
}

// complete is asked for every line, so it does not look at the text.
func (f fields) complete() bool {
	return !slices.ContainsFunc(f[:], func(v *value) bool { return v == nil || !v.filled })
}

// entry is the values in normal form, with whatever of them is there, and the
// names of the fields that are not.
func (d *draft) entry() (e Entry, missing []string) {
	e.Line = d.line
	for i, into := range []*string{&e.Spec, &e.Input, &e.Observed} {
		if d.of[i] != nil {
			*into = normal(d.of[i].lines)
		}
		if void(*into) {
			missing = append(missing, fieldNames[i])
		}
	}
	if len(missing) == 0 && e.hollow() {
		missing = fieldNames[:]
	}
	return e, missing
}
