package spec

import (
	"regexp"
	"strings"
)

// unit is a run of lines that says one thing: a list item, a paragraph's line,
// each with the lines that go on with it. What the next line must know of it is
// kept up to date, since a unit can be as long as the spec.
type unit struct {
	first   int // index of its first line
	indent  int // columns before it
	lines   []string
	last    string // its last line with any text, trimmed
	arrow   bool   // there is one
	bracket int    // brackets opened and not closed
}

func (u *unit) add(line string) {
	u.lines = append(u.lines, line)
	text := strings.TrimSpace(unquote(line))
	if text == "" || fenceLine.MatchString(text) {
		return
	}
	u.last, u.arrow = text, u.arrow || hasArrow(text)
	for _, c := range text {
		switch c {
		case '(', '[', '{':
			u.bracket++
		case ')', ']', '}':
			u.bracket--
		}
	}
}

// flat is the unit on one line.
func (u *unit) flat() string {
	var parts []string
	for _, l := range u.lines {
		if l = strings.TrimSpace(unquote(l)); l != "" && !fenceLine.MatchString(l) {
			parts = append(parts, l)
		}
	}
	return strings.Join(parts, " ")
}

func (u *unit) text() string { return strings.TrimSpace(strings.Join(u.lines, "\n")) }

var (
	listItem  = regexp.MustCompile(`^([ \t]*)(?:> ?)*[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?`)
	quoteMark = regexp.MustCompile(`^[ \t]*(?:>[ \t]?)+`)
)

func unquote(line string) string { return line[len(quoteMark.FindString(line)):] }

// columns counts the white space before a line's text, quote marks as such.
func columns(line string) int {
	n := 0
	for _, c := range line {
		switch c {
		case ' ', '>':
			n++
		case '\t':
			n += 4
		default:
			return n
		}
	}
	return n
}

func begin(i int, line string) *unit {
	u := &unit{first: i, indent: columns(line)}
	offset := len(listItem.FindString(line))
	if offset == 0 {
		offset = len(line) - len(strings.TrimLeft(unquote(line), " \t"))
	}
	u.add(line[offset:])
	return u
}

// continues decides whether a line goes on with the unit: when it is indented
// deeper, begins with an arrow, follows one, or closes a bracket of the unit's.
func (u *unit) continues(line string) bool {
	text := strings.TrimSpace(unquote(line))
	switch {
	case listItem.MatchString(line):
		return false
	case startsWithArrow(text), endsWithArrow(u.last), u.bracket > 0 && strings.IndexAny(text, ")]}") == 0:
		return true
	case columns(line) <= u.indent:
		return false
	case u.arrow:
		return !hasArrow(text)
	}
	return !strings.HasSuffix(u.last, ":")
}

// trim drops the empty line of a list mark that stands alone.
func (u *unit) trim() {
	for len(u.lines) > 1 && strings.TrimSpace(u.lines[0]) == "" {
		u.lines, u.first = u.lines[1:], u.first+1
	}
}
