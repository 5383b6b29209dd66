package spec

import (
	"regexp"
	"strings"
)

// unit is a run of lines that says one thing: a list item, a heading, a line of
// a paragraph, each with the lines that go on with it. What the next line must
// know of it is kept up to date, since a unit can be as long as the spec.
type unit struct {
	first, last int // indexes of its lines
	cut         int // runes before its text in the first line: indentation, list mark
	indent      int // columns before it
	item        bool
	head        int // level of a heading, 0 for none
	code        bool
	table       *table
	texts       []string // its lines as they are read, without marks

	tail    string // its last line with any text
	width   int    // columns of that line
	arrow   bool   // there is one
	bracket int    // brackets opened and not closed
	label   label  // of its first line
	gap     bool   // a blank line follows
	body    bool   // its last lines are a code block
}

var (
	listItem = regexp.MustCompile(`^([ \t]*)(?:> ?)*[ \t]*(?:[-*+•◦‣▪·–—✓✔✅☐☑]|\d{1,3}(?:\.\d{1,3})*[.)]|[a-z]\)|\([a-z0-9]\))[ \t]+(?:\[[ xX]\][ \t]+)?` +
		`|^([ \t]*)(?:> ?)*[ \t]*[-*+•][ \t]*$`)
	quoteMark = regexp.MustCompile(`^[ \t]*(?:>[ \t]?)+`)
)

// itemMark is how many bytes of a line are the mark of a list item, 0 for none.
func itemMark(line string) int {
	text := strings.TrimLeft(line, " \t>")
	if text == "" {
		return 0
	}
	switch c := text[0]; {
	case c >= '0' && c <= '9', strings.IndexByte("-*+(", c) >= 0, c >= 0x80, c >= 'a' && c <= 'z' && strings.HasPrefix(text[1:], ")"):
		return len(listItem.FindString(line))
	}
	return 0
}

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

// newUnit begins a unit at line i.
func newUnit(i int, line string) *unit {
	u := &unit{first: i, last: i, indent: columns(line)}
	offset := itemMark(line)
	u.item = offset > 0
	if !u.item {
		offset = len(line) - len(strings.TrimLeft(unquote(line), " \t"))
	}
	u.cut = len([]rune(line[:offset]))
	text := strings.TrimSpace(line[offset:])
	u.label, _ = labelOf(text)
	u.add(i, text)
	return u
}

// add takes one more line, which need not be the one after the last.
func (u *unit) add(i int, line string) {
	text := strings.TrimSpace(unquote(line))
	u.gap, u.last = false, i
	u.texts = append(u.texts, text)
	if text == "" || isFence(text) {
		return
	}
	u.tail, u.width, u.arrow = text, len([]rune(line)), u.arrow || hasArrow(text)
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
	for _, t := range u.texts {
		if t != "" && !isFence(t) {
			parts = append(parts, t)
		}
	}
	return strings.Join(parts, " ")
}

// value is what a labelled unit says: all but the label.
func (u *unit) value() string {
	var parts []string
	if u.label.rest != "" {
		parts = append(parts, u.label.rest)
	}
	for _, t := range u.texts[1:] {
		if t != "" && !isFence(t) {
			parts = append(parts, t)
		}
	}
	return strings.Join(parts, " ")
}

// open says that something has to follow.
func (u *unit) open() bool {
	return u.label.part != 0 && u.label.rest == "" && len(u.texts) == 1 || endsWithArrow(u.tail)
}

// trim drops the empty line of a list mark that stands alone.
func (u *unit) trim() {
	for len(u.texts) > 1 && u.texts[0] == "" {
		u.texts, u.first, u.cut = u.texts[1:], u.first+1, 0
		u.label, _ = labelOf(u.texts[0])
	}
}
