package report

import (
	"fmt"
	"strings"

	"abl/internal/redact"
)

// Limits of one text of a record, in bytes: as a line, and as a block of lines.
const (
	maxLine  = 600
	maxBlock = 4 << 10
)

const cutMark = " … [cut]"

// line is a text on one line, without anything that steers a terminal.
func line(s string) string { return short(redact.Line(s), maxLine) }

// block is a text of several lines, those after the first indented, so that
// none of them can pass for a line of abl's.
func block(s, indent string) string {
	s = short(redact.String(strings.ReplaceAll(s, "\r\n", "\n")), maxBlock)
	return strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n"+indent)
}

// short cuts a text and says so.
func short(s string, max int) string {
	if len(s) <= max {
		return s
	}
	return strings.ToValidUTF8(s[:max-len(cutMark)], "") + cutMark
}

// steering are the characters with which a text could be more than a text in
// Markdown: of its marks, of HTML, of a table's cells, of mathematics, of links
// that are made of addresses, and of mentions. Spelled as references they are
// text and nothing else. What counts at the beginning of a line alone is not
// among them, for a text never stands there.
const steering = "\\`*_[]<>&!~|$:@^{}\"'#"

// code is a text on one line for any place within a line of Markdown, a table's
// cell too. The element keeps those who make links of names away from it.
func code(s string) string {
	s = line(s)
	if s == "" {
		return "–"
	}
	var b strings.Builder
	b.WriteString("<code>")
	before := 'x'
	for _, r := range s {
		if strings.ContainsRune(steering, r) || r == '.' && (before == 'w' || before == 'W') {
			fmt.Fprintf(&b, "&#%d;", r)
		} else {
			b.WriteRune(r)
		}
		before = r
	}
	b.WriteString("</code>")
	return b.String()
}
