package verdict

import (
	"regexp"
	"strings"
)

// field is one of the three parts of an entry.
type field int

const (
	specField field = iota
	inputField
	observedField
)

var fieldNames = [...]string{"SPEC", "INPUT", "OBSERVED"}

func (f field) String() string { return fieldNames[f] }

// label is a line that opens a field.
type label struct {
	field field
	lead  int    // columns of white space before it
	col   int    // column of its first letter or emphasis, after bullets and heading marks
	rest  string // what follows on the line
}

var labelLine = regexp.MustCompile(
	"^( *)((?:(?:[-*+•]|\\d{1,3}[.)])[ \\t]+(?:\\[[ xX]\\][ \\t]+)?|#{1,6}[ \\t]+)*)" +
		"([*_`]{0,3})(?i:(spec|input|observed))([*_`]{0,3})[ \\t]*[:：](.*)$")

// labelOf recognises SPEC:, INPUT: and OBSERVED: in the dress that people and
// models give them: bullets, numbers, check boxes, heading marks, emphasis.
func labelOf(line string) (label, bool) {
	m := labelLine.FindStringSubmatch(line)
	if m == nil {
		return label{}, false
	}
	open, shut, rest := m[3], m[5], strings.TrimSpace(m[6])
	switch {
	case open != "" && shut == "" && strings.HasPrefix(rest, open):
		rest = rest[len(open):]
	case open != "" && shut == "":
		rest = strings.TrimSuffix(rest, open)
	}
	l := label{lead: len(m[1]), col: len(m[1]) + len(m[2]), rest: strings.TrimSpace(rest)}
	for i, name := range fieldNames {
		if strings.EqualFold(name, m[4]) {
			l.field = field(i)
		}
	}
	return l, true
}

// fence is a line that opens or closes a code block.
type fence struct {
	mark byte
	size int
	info string
}

// fenceOf recognises a fence line. As in Markdown, three backquotes followed by
// a further one on the same line are inline code.
func fenceOf(line string) (fence, bool) {
	s := strings.TrimSpace(line)
	if !strings.HasPrefix(s, "```") && !strings.HasPrefix(s, "~~~") {
		return fence{}, false
	}
	f := fence{mark: s[0]}
	f.size = len(s) - len(strings.TrimLeft(s, s[:1]))
	f.info = strings.TrimSpace(s[f.size:])
	return f, f.mark == '~' || !strings.Contains(f.info, "`")
}

func (f fence) closedBy(line string) bool {
	end, ok := fenceOf(line)
	return ok && end.mark == f.mark && end.size >= f.size && end.info == ""
}

var quoteMark = regexp.MustCompile(`^(?: {0,3}> ?)+`)

// unquote takes the marks of a block quote off a line.
func unquote(line string) (string, bool) {
	n := len(quoteMark.FindString(line))
	return line[n:], n > 0
}

var ruleLine = regexp.MustCompile(`^ *(?:-{3,}|\*{3,}|_{3,}|={3,})$`)

// decoration reports lines that carry no statement: headings and rules.
func decoration(line string) bool {
	return ruleLine.MatchString(line) || strings.HasPrefix(strings.TrimSpace(line), "#")
}
