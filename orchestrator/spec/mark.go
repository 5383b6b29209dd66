package spec

import (
	"regexp"
	"strings"
)

// kind is what a line is to the search for contracts.
type kind int

const (
	skip    kind = iota // nothing of the kind: prose elsewhere, comments, foreign code
	plain               // may hold a contract, or go on with one
	heading             // may hold a contract by itself
	body                // a code block in some language: at most part of a result
	blank               // ends whatever was before
)

// marks is the role of every line.
type marks struct {
	kinds        []kind
	hasContext   bool
	hasContracts bool
	comment      int // line of a comment that nothing closes, 0 for none
}

// section is the part of a spec that a line stands in.
type section int

const (
	other section = iota
	contextSection
	contractsSection
)

// marker walks over the lines of a spec once.
type marker struct {
	kinds    []kind
	sections []section
	now      section
	level    int    // of the heading that began it
	fence    string // that closes the code block we are in, "" outside
	foreign  bool   // that code block is in some language
	comment  int    // line that began the HTML comment we are in, 0 outside
}

// mark sorts the lines. Where there is a Contracts section, nothing outside it
// is a contract; a Context section never holds one.
func mark(lines []string) marks {
	m := &marker{}
	result := marks{}
	for i, line := range lines {
		k := blank
		if i > 0 { // the title is no contract
			k = m.kind(i+1, line)
		}
		m.kinds, m.sections = append(m.kinds, k), append(m.sections, m.now)
		result.hasContracts = result.hasContracts || m.now == contractsSection
		result.hasContext = result.hasContext || m.now == contextSection
	}
	for i, s := range m.sections {
		if s == contextSection || result.hasContracts && s != contractsSection {
			m.kinds[i] = skip
		}
	}
	result.kinds, result.comment = m.kinds, m.comment
	return result
}

func (m *marker) kind(no int, line string) kind {
	text := strings.TrimSpace(line)
	switch {
	case m.fence != "":
		return m.inside(text)
	case m.comment > 0 || strings.HasPrefix(text, "<!--"):
		m.commented(no, text)
		return skip
	case text == "":
		return blank
	case fenceLine.MatchString(text):
		return m.opened(text)
	}
	level, name, ok := headingOf(line)
	switch {
	case !ok:
		return plain
	case m.enter(level, name):
		return blank
	}
	return heading
}

func (m *marker) commented(no int, text string) {
	switch {
	case strings.Contains(text, "-->"):
		m.comment = 0
	case m.comment == 0:
		m.comment = no
	}
}

var (
	fenceLine = regexp.MustCompile("^(?:```+[^`]*|~~~+.*)$")
	// A block in one of these holds contracts; one in another language is an
	// example, and "->" or "=>" in it are that language's.
	ownLanguage = regexp.MustCompile(`(?i)^(?:te?xt|plain|plaintext|contracts?|specs?|http|abl|markdown|md)?$`)
)

func (m *marker) opened(text string) kind {
	info := strings.TrimLeft(text, text[:1])
	m.fence = text[:len(text)-len(info)]
	lang, _, _ := strings.Cut(strings.TrimSpace(info), " ")
	m.foreign = !ownLanguage.MatchString(lang)
	if m.foreign {
		return body
	}
	return blank
}

func (m *marker) inside(text string) kind {
	closing := strings.HasPrefix(text, m.fence) && strings.Trim(text, m.fence[:1]) == ""
	if closing {
		m.fence = ""
	}
	switch {
	case m.foreign:
		return body
	case closing, text == "":
		return blank
	}
	return plain
}

var (
	hashHeading = regexp.MustCompile(`^ {0,3}(#{1,6})[ \t]+(.+?)[ \t]*#*$`)
	boldHeading = regexp.MustCompile(`^(?:\*\*|__)?(Context|CONTEXT|Contracts?|CONTRACTS?)(?:\*\*|__)?:?(?:\*\*|__)?$`)
	sectionName = regexp.MustCompile(`(?i)^[\W\d_]*(?:the )?(context|contracts?)\b`)
)

// headingOf recognises headings, and the names of the two sections on a line of
// their own, as people write them without heading marks.
func headingOf(line string) (level int, name string, ok bool) {
	if m := hashHeading.FindStringSubmatch(line); m != nil {
		return len(m[1]), m[2], true
	}
	if m := boldHeading.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
		return 7, m[1], true
	}
	return 0, "", false
}

// enter follows the sections: one ends at the next heading of its level or a
// higher one, or where the other one begins. It reports whether the heading is
// the name of a section; "### Contract 2: a → b" within the contracts is not.
func (m *marker) enter(level int, name string) bool {
	match := sectionName.FindStringSubmatch(name)
	if match == nil {
		if level <= m.level {
			m.now, m.level = other, level
		}
		return false
	}
	next := contractsSection
	if strings.EqualFold(match[1], "context") {
		next = contextSection
	}
	if next == m.now && level > m.level {
		return false
	}
	m.now, m.level = next, level
	return true
}
