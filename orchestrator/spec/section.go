package spec

import (
	"regexp"
	"strings"
)

// section is the part of a spec that a line stands in.
type section int

const (
	other section = iota
	contextSection
	contractsSection
)

// place is a section that is open: it ends at the next heading of its level or
// a higher one.
type place struct {
	level int
	section
}

var (
	hashHeading = regexp.MustCompile(`^ {0,3}(#{1,6})[ \t]+(.+?)[ \t]*#*$`)
	boldHeading = regexp.MustCompile(`^(?:\*\*|__)?(Context|CONTEXT|Contracts?|CONTRACTS?)(?:\*\*|__)?[:：]?(?:\*\*|__)?$`)
	sectionName = regexp.MustCompile(`(?i)^[\W\d_]*(?:(?:[\w-]+[\W]+){0,3}?(contracts)|(context|contract))\b(.*)$`)
)

// boldLevel is below those of headings with marks.
const boldLevel = 7

// headingOf recognises headings, and the names of the two sections on a line of
// their own, as people write them without heading marks.
func headingOf(line string) (level int, name string, ok bool) {
	text := strings.TrimSpace(line)
	switch begin := strings.TrimLeft(text, "*_"); {
	case strings.HasPrefix(text, "#"):
		if m := hashHeading.FindStringSubmatch(line); m != nil {
			return len(m[1]), m[2], true
		}
	case strings.HasPrefix(begin, "C"):
		if m := boldHeading.FindStringSubmatch(text); m != nil {
			return boldLevel, m[1], true
		}
	}
	return 0, "", false
}

// underlined is the level of a heading by the line under it.
func underlined(line string) int {
	if strings.Contains(line, "=") {
		return 1
	}
	return 2
}

func (m *marker) now() section {
	if n := len(m.open); n > 0 {
		return m.open[n-1].section
	}
	return other
}

// enter follows the sections. It reports whether the heading is no more than
// the name of one; "### Contract 2: a → b" is more.
func (m *marker) enter(level int, name string) bool {
	for len(m.open) > 0 && m.open[len(m.open)-1].level >= level {
		m.open = m.open[:len(m.open)-1]
	}
	match := sectionName.FindStringSubmatch(name)
	if match == nil {
		return false
	}
	next := contractsSection
	if strings.EqualFold(match[2], "context") {
		next = contextSection
	}
	if next == m.now() {
		return false
	}
	m.open = append(m.open, place{level, next})
	single := strings.EqualFold(match[2], "contract") && strings.Trim(match[3], ` :*_`) != ""
	return !single
}
