package spec

import (
	"regexp"
	"strings"
)

// kind is what a line is to the search for contracts.
type kind int

const (
	skip    kind = iota // nothing of the kind: prose elsewhere, comments
	plain               // may hold a contract, or go on with one
	code                // the same, in a code block: there a line ends where it ends
	heading             // may hold a contract by itself, and names those below it
	body                // a code block without contracts: at most part of a text before it
	blank               // empty, or of no meaning
)

// marks is the role of every line.
type marks struct {
	kinds        []kind
	texts        []string // the lines as they are read: no comments, plain spaces
	names        []string // of headings
	levels       []int    // of headings
	hasContext   bool
	hasContracts bool
	comment      int   // line of a comment that nothing closes, 0 for none
	fence        int   // line of a code block that nothing closes, 0 for none
	outside      []int // indexes of lines left out because they stand beside the Contracts section
}

// marker walks over the lines of a spec once.
type marker struct {
	marks
	sections []section // of every line
	open     []place   // the sections that we are in, by level
	block    block
	comment  int // line that began the HTML comment we are in, 0 outside
}

// mark sorts the lines. Where there is a Contracts section, nothing outside it
// is a contract; a Context section never holds one.
func mark(lines []string) marks {
	m := &marker{}
	m.names, m.levels = make([]string, len(lines)), make([]int, len(lines))
	for i, line := range lines {
		m.texts = append(m.texts, readable(line, m.block.fence != ""))
		k := blank
		if i > 0 { // the title is no contract
			k = m.kind(i, lines)
		}
		m.kinds, m.sections = append(m.kinds, k), append(m.sections, m.now())
		m.hasContracts = m.hasContracts || m.now() == contractsSection
		m.hasContext = m.hasContext || m.now() == contextSection
	}
	if m.block.fence != "" {
		m.fence = m.block.first + 1
		m.block.end(&m.marks, len(lines))
	}
	for i, s := range m.sections {
		switch {
		case s == contextSection:
			m.kinds[i] = skip
		case m.hasContracts && s != contractsSection:
			if m.kinds[i] != blank && m.kinds[i] != skip {
				m.outside = append(m.outside, i)
			}
			m.kinds[i] = skip
		}
	}
	m.marks.comment = m.comment
	return m.marks
}

var (
	closedComment = regexp.MustCompile(`<!--.*?-->`)
	ruleLine      = regexp.MustCompile(`^(?:-[ \t]*){3,}$|^(?:\*[ \t]*){3,}$|^(?:_[ \t]*){3,}$`)
	underline     = regexp.MustCompile(`^ {0,3}(={3,}|-{3,})[ \t]*$`)
)

// readable is a line as it is read. The person's text stays what it is.
func readable(line string, inBlock bool) string {
	if !inBlock && strings.Contains(line, "<!--") && !strings.HasPrefix(strings.TrimSpace(line), "<!--") {
		line = closedComment.ReplaceAllString(line, "")
	}
	return strings.Map(func(c rune) rune {
		switch {
		case c == '\u00a0', c == '\u202f', c == '\u3000', c >= '\u2000' && c <= '\u200a':
			return ' '
		case c == '\u200b', c == '\ufeff':
			return -1
		}
		return c
	}, line)
}

// Most lines are nothing of the kind, and a look at their beginning tells.
func isRule(text string) bool {
	return strings.IndexByte("-*_", text[0]) >= 0 && ruleLine.MatchString(text)
}

func isUnderline(line string) bool {
	line = strings.TrimLeft(line, " ")
	return line != "" && (line[0] == '=' || line[0] == '-') && underline.MatchString(line)
}

func (m *marker) kind(i int, lines []string) kind {
	text := strings.TrimSpace(m.texts[i])
	switch {
	case m.block.fence != "":
		return m.block.inside(&m.marks, i, text)
	case m.comment > 0 || strings.HasPrefix(text, "<!--"):
		m.commented(i+1, text)
		return skip
	case text == "", isRule(text), m.levels[i] < 0:
		return blank
	case isFence(text):
		return m.block.begin(i, text)
	}
	if at := strings.Index(m.texts[i], "<!--"); at >= 0 { // goes on below
		m.comment, m.texts[i] = i+1, m.texts[i][:at]
	}
	level, name, ok := headingOf(m.texts[i])
	if (!ok || level == boldLevel) && i+1 < len(lines) && isUnderline(lines[i+1]) && titles(m.texts[i]) {
		level, name, ok = underlined(lines[i+1]), text, true
		m.levels[i+1] = -1 // the line below it is spent
	}
	if !ok {
		return plain
	}
	m.names[i], m.levels[i] = name, level
	if m.enter(level, name) {
		return blank
	}
	return heading
}

// titles says that a line with another one drawn under it is a heading; a
// contract above a rule, an item and a table's head are none.
func titles(line string) bool {
	return !hasArrow(line) && itemMark(line) == 0 && !strings.Contains(line, "|")
}

func (m *marker) commented(no int, text string) {
	switch {
	case strings.Contains(text, "-->"):
		m.comment = 0
	case m.comment == 0:
		m.comment = no
	}
}
