package spec

import (
	"fmt"
	"strings"
)

// contracts finds them in the order of the text.
func (r *reader) contracts(lines []string, m marks) []Contract {
	f := &finder{reader: r, sure: m.hasContracts}
	for i := 0; i < len(lines); i++ {
		switch k := m.kinds[i]; {
		case k == plain && isTable(lines, m.kinds, i):
			f.flush()
			i = f.table(lines, m.kinds, i)
		case k == plain && f.unit != nil && f.unit.continues(lines[i]),
			k == body && f.unit != nil && f.holds(lines[i]):
			f.unit.add(lines[i])
		case k == plain:
			f.flush()
			f.unit = begin(i, lines[i])
		case k == heading:
			f.flush()
			f.heading(i, lines[i])
		default:
			f.flush()
		}
	}
	f.flush()
	return f.found
}

// finder holds the unit in the making and what was found.
type finder struct {
	*reader
	unit  *unit
	found []Contract
	block bool // the unit's last lines are a code block
	sure  bool // we are in a Contracts section
}

// holds decides whether a code block is part of the result before it.
func (f *finder) holds(line string) bool {
	u := f.unit
	f.block = f.block || u.arrow && (columns(line) > u.indent || strings.HasSuffix(u.last, ":"))
	return f.block
}

func (f *finder) flush() {
	if u := f.unit; u != nil {
		u.trim()
		if action, result, ok := split(u.flat()); ok {
			f.add(u.first, action, result, u.text())
		}
	}
	f.unit, f.block = nil, false
}

func (f *finder) heading(i int, line string) {
	_, name, _ := headingOf(line)
	if action, result, ok := split(name); ok {
		f.add(i, action, result, name)
	}
}

func (f *finder) add(i int, action, result, text string) {
	c := Contract{Text: text, Line: i + 1, Absence: absence.MatchString(text)}
	c.Action = tidy(absence.ReplaceAllString(action, ""))
	c.Result = tidy(absence.ReplaceAllString(result, ""))
	switch {
	case c.Action == "":
		f.warn(c.Line, fmt.Sprintf("%s has no action", quote(text)), "write ACTION → EXPECTED RESULT")
		return
	case c.Result == "":
		f.warn(c.Line, fmt.Sprintf("%s has no result", quote(text)), "write ACTION → EXPECTED RESULT")
		return
	}
	c.ID = fmt.Sprintf("P%d.C%d", f.number, len(f.found)+1)
	f.found = append(f.found, c)
}
