package redact

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	// maxLine is how many bytes of a line are shown, the prefix not counted.
	maxLine = 4 << 10
	// maxMarks is how many combining marks may stand on one character; Zalgo
	// towers paint over the lines around them.
	maxMarks = 8
	cutMark  = "…(cut)"
)

// String makes text safe. It is idempotent: the escapes that it writes are
// plain text.
func String(s string) string { return clean(s, false) }

// Whole is String for text that is stored or counted rather than shown: no line
// is cut, and the escapes are those of newCleanLog.
func Whole(s string) string { return clean(s, true) }

func clean(s string, log bool) string {
	c := cleaner{log: log, out: make([]byte, 0, len(s))}
	c.text([]byte(s))
	c.rest()
	return string(c.out)
}

// Line makes text safe and puts it on one line, so that no part of it can pass
// for a line of abl's own.
func Line(s string) string { return String(strings.Join(strings.Fields(s), " ")) }

// cleaner is the one filter behind String, Writer and Log. Between chunks it
// holds the beginning of a character, and where on the line it is.
type cleaner struct {
	prefix  string
	log     bool // lines are kept whole, and what is JSON stays so
	out     []byte
	part    []byte // beginning of a character, or of a line end, that the next chunk may complete
	line    int    // bytes shown of this line
	marks   int    // combining marks since the last base character
	inLine  bool   // the line has begun
	dropped bool   // the line was cut
	columns int    // of a row, 0 for lines in one piece
	column  int    // taken of this row
}

// text takes the next chunk.
func (c *cleaner) text(p []byte) {
	if len(c.part) > 0 {
		p = append(c.part, p...)
		c.part = nil
	}
	for len(p) > 0 {
		if n := printable(p); n > 0 && (c.dropped || c.fits(n)) { // nearly all there is; the tables below are slow
			c.show(p[:n])
			c.marks, p = 0, p[n:]
			continue
		}
		if p[0] == '\r' && len(p) > 1 && p[1] == '\n' { // an agent's line end
			p = p[1:]
			continue
		}
		if !utf8.FullRune(p) || p[0] == '\r' && len(p) == 1 {
			c.part = append([]byte(nil), p...)
			return
		}
		r, size := utf8.DecodeRune(p)
		c.char(r, p[:size])
		p = p[size:]
	}
}

// printable is how many bytes at the beginning of p are printable ASCII.
func printable(p []byte) int {
	for i, b := range p {
		if b < ' ' || b > '~' {
			return i
		}
	}
	return len(p)
}

// rest ends the text: what was the beginning of a character is none.
func (c *cleaner) rest() {
	for _, b := range c.part {
		r := utf8.RuneError
		if b == '\r' {
			r = '\r'
		}
		c.char(r, []byte{b})
	}
	c.part = nil
}

func (c *cleaner) char(r rune, raw []byte) {
	if r == '\n' {
		c.start()
		c.out = append(c.out, '\n')
		c.line, c.marks, c.inLine, c.dropped, c.column = 0, 0, false, false, 0
		return
	}
	c.show(c.visible(r, raw))
}

// visible is the form in which a character may be shown.
func (c *cleaner) visible(r rune, raw []byte) []byte {
	switch {
	case r >= ' ' && r <= '~':
		c.marks = 0
		return raw
	case r == utf8.RuneError && len(raw) == 1:
		c.marks = 0
		if c.log {
			return escaped(r)
		}
		return fmt.Appendf(nil, `\x%02x`, raw[0])
	case unicode.Is(unicode.M, r):
		if c.marks++; c.marks <= maxMarks && c.line > 0 && !blank(r) {
			return raw
		}
	default:
		c.marks = 0
		if r == '\t' || Plain(r) {
			return raw
		}
	}
	if c.log {
		return escaped(r)
	}
	if r < 0x100 {
		return fmt.Appendf(nil, `\x%02x`, r)
	}
	return fmt.Appendf(nil, `\u{%x}`, r)
}

// escaped is a character as JSON spells it, which is as plain to people.
func escaped(r rune) (text []byte) {
	for _, unit := range utf16.AppendRune(nil, r) {
		text = fmt.Appendf(text, `\u%04x`, unit)
	}
	return text
}

// Plain says whether a character does nothing but be seen. What Unicode calls
// graphic leaves out controls, formats (direction, zero width, tags), line and
// paragraph separators, private use and what is not assigned.
func Plain(r rune) bool {
	return unicode.IsGraphic(r) && !blank(r)
}

// blank says whether a graphic character shows nothing. The one that asks for
// the coloured form of an emoji is let through; it is everywhere.
func blank(r rune) bool {
	const emoji, braille = '\uFE0F', '\u2800'
	return r != emoji && (r == braille || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector))
}

// show adds text to the line as long as there is room for it and the mark. The
// mark always stands at the same place, so that a cut line that is made safe
// again is cut there again.
func (c *cleaner) show(text []byte) {
	c.start()
	if c.dropped {
		return
	}
	if !c.fits(len(text)) {
		c.dropped = true
		pad := maxLine - len(cutMark) - c.line
		text = append(bytes.Repeat([]byte{' '}, pad), cutMark...)
	}
	c.line += len(text)
	c.put(text)
}

// fits says whether so many bytes more may stand on the line.
func (c *cleaner) fits(n int) bool {
	return c.log || !c.dropped && c.line+n <= maxLine-len(cutMark)
}

// start begins a line with the prefix.
func (c *cleaner) start() {
	if !c.inLine {
		c.out = append(c.out, c.prefix...)
		c.inLine = true
	}
}
