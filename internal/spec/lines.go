package spec

import (
	"regexp"
	"strings"
)

// section is a section of a spec. It ends at the next heading of the same or a higher level.
type section int

const (
	other section = iota
	contextSection
	contractsSection
)

var (
	closedComment = regexp.MustCompile(`<!--.*?-->`)
	ruleLine      = regexp.MustCompile(`^(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$`)
	underline     = regexp.MustCompile(`^ {0,3}(?:={3,}|-{3,})[ \t]*$`)
	hashHeading   = regexp.MustCompile(`^ {0,3}(#{1,6})[ \t]+(.+?)[ \t]*#*$`)
	oddSpaces     = regexp.MustCompile(`[\x{a0}\x{202f}\x{3000}\x{2000}-\x{200a}]`)
	noSpaces      = strings.NewReplacer("\u200b", "", "\ufeff", "")

	sectionLine  = regexp.MustCompile(`^(?:\*\*|__)?(Context|CONTEXT|Contracts?|CONTRACTS?)(?:\*\*|__)?[:：]?(?:\*\*|__)?$`)
	contractName = regexp.MustCompile(`(?i)^[\W\d_]*(?:(?:[\w-]+\W+){0,3}?contracts\b|contract\W*$)`)
	contextName  = regexp.MustCompile(`(?i)^[\W\d_]*context\b`)

	boldLine = regexp.MustCompile(`^(?:\*\*[^*]+\*\*|__[^_]+__)$`)
	numbered = regexp.MustCompile(`\d|[①-⑳]`)
	wrapped  = regexp.MustCompile(`(?i)^[ \t]*(?:>|</?(?:ul|ol|li|table|tr|t[dh]|p|div|dl|dt|dd|details|summary)\b)`)
	listItem = regexp.MustCompile(`^[ \t]*(?:(?:[-*+•◦‣▪·–—✓✔✅☐☑]|\d{1,3}(?:\.\d{1,3})*[.)]|[a-z]\)|\([a-z0-9]{1,3}\))(?:[ \t]+|$)|[・●○■□►▶※①-⑳][ \t]*)(?:\[[ xX]\](?:[ \t]+|$))?`)
	row      = regexp.MustCompile(`^[ \t]*\|`)
	ruler    = regexp.MustCompile(`^[ \t]*[|+][+|: \t]*[-=][-+|:= \t]*$`)
)

// itemMark returns the marker of a list item with the white space around it.
func itemMark(line string) string { return listItem.FindString(line) }

// columns returns the width of the white space at the beginning of a line.
func columns(line string) int {
	before := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
	return len(before) + 3*strings.Count(before, "\t")
}

// headingOf recognizes a heading, and the name of one of the two sections on a separate line
// without heading marks. rows is the number of lines of the heading, 0 if line is not one.
func headingOf(line, next string) (level, rows int, name string) {
	if m := hashHeading.FindStringSubmatch(line); m != nil {
		return len(m[1]), 1, m[2]
	}
	switch m := sectionLine.FindStringSubmatch(strings.TrimSpace(line)); {
	// A contract above a rule, an item and a table's header are not headings.
	case underline.MatchString(next) &&
		itemMark(line) == "" && !hasArrow(line) && !strings.Contains(line, "|"):
		level = 2
		if strings.Contains(next, "=") {
			level = 1
		}
		return level, 2, strings.TrimSpace(line)
	case m != nil:
		return 7, 1, m[1] // lower than any heading with marks
	}
	return 0, 0, ""
}

// sectionOf returns the section that a heading begins, or in if it begins none.
func sectionOf(name string, in section) section {
	switch {
	case contractName.MatchString(name) && !freeIn(name):
		return contractsSection
	case contextName.MatchString(name):
		return contextSection
	}
	return in
}

// plainSpaces replaces all kinds of spaces in a line with plain ones. Spec.Text keeps the original.
func plainSpaces(line string) string {
	return oddSpaces.ReplaceAllString(noSpaces.Replace(line), " ")
}

// Fence recognizes a line that opens or closes a code block. It returns the marks and the text
// after them. As in Markdown, three backquotes with another one on the same line are inline code.
func Fence(line string) (mark, info string, ok bool) {
	s := strings.TrimSpace(line)
	if !strings.HasPrefix(s, "```") && !strings.HasPrefix(s, "~~~") {
		return "", "", false
	}
	info = strings.TrimLeft(s, s[:1])
	return s[:len(s)-len(info)], strings.TrimSpace(info), s[0] == '~' || !strings.Contains(info, "`")
}
