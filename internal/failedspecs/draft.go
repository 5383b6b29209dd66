package failedspecs

import "strings"

// draft is an entry in the making.
type draft struct {
	line   int
	lead   int      // of its SPEC
	bare   bool     // its SPEC stood alone as a title
	rounds []fields // what was observed of the contract, once or more often
	last   field    // takes the lines that follow
	blanks int      // blank lines seen since its last line
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

func (d *draft) now() *fields { return &d.rounds[len(d.rounds)-1] }

// takes decides whether a line without a label goes on with the value before
// it. A raw answer has blank lines; the words of a contract have none.
func (d *draft) takes(line string) bool {
	v := d.now()[d.last]
	return d.last != specField || d.blanks == 0 || indent(line) > v.lead || len(v.lines) == 0
}

func (d *draft) add(line string) {
	v := d.now()[d.last]
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
	v := d.now()[d.last]
	for n := len(v.lines); n > 1; n = len(v.lines) {
		line := v.lines[n-1]
		if line != "" && (!decoration(line) || last && !ruleLine().MatchString(line) || indent(line) > d.lead) {
			return
		}
		v.lines = v.lines[:n-1]
	}
}

// merged are the observations; one that lacks something goes on with the one before.
func (d *draft) merged() []fields {
	n := len(d.rounds) - 1
	if last := d.rounds[n]; n > 0 {
		if _, missing := last.entry(0); len(missing) > 0 {
			for f := inputField; f <= observedField; f++ {
				if last[f] != nil {
					d.rounds[n-1][f].lines = append(d.rounds[n-1][f].lines, last[f].lines...)
				}
			}
			return d.rounds[:n]
		}
	}
	return d.rounds
}

// complete is asked for every line, so it does not look at the text.
func (f *fields) complete() bool {
	for _, v := range f {
		if v == nil || !v.filled {
			return false
		}
	}
	return true
}

// entry is the values in normal form, with whatever of them is there, and the
// names of the fields that are not.
func (f *fields) entry(line int) (e Entry, missing []string) {
	e.Line = line
	for i, into := range []*string{&e.Spec, &e.Input, &e.Observed} {
		if f[i] != nil {
			*into = normal(f[i].lines)
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
