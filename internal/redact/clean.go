package redact

import (
	"bytes"
	"fmt"
	"io"
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
// is cut, and the escapes are those of JSON.
func Whole(s string) string { return clean(s, true) }

func clean(s string, log bool) string {
	var out strings.Builder // which does not fail
	c := cleaner{to: &out, log: log}
	c.Write([]byte(s))
	c.Close()
	return out.String()
}

// Line makes text safe and puts it on one line, so that no part of it can pass
// for a line of abl's own.
func Line(s string) string { return String(strings.Join(strings.Fields(s), " ")) }

// cleaner is the one filter behind String, Writer and Log. Between chunks it
// holds the beginning of a character, and where on the line it is.
type cleaner struct {
	to      io.Writer
	prefix  string // of each line: abl's own, and taken as it is
	log     bool   // lines are kept whole, and what is JSON stays so
	columns int    // of a row, 0 for lines in one piece
	out     []byte
	part    []byte // beginning of a character, or of a line end, that the next chunk may complete
	line    int    // bytes shown of this line
	marks   int    // combining marks since the last base character
	inLine  bool   // the line has begun
	dropped bool   // the line was cut
	column  int    // taken of this row
}

// Write takes the next chunk. A character that the chunk ends in the middle of
// waits for the next one.
func (c *cleaner) Write(chunk []byte) (int, error) {
	p := append(c.part, chunk...)
	c.part = nil
	for len(p) > 0 {
		n := printable(p) // nearly all there is; the tables below are slow
		if !c.dropped && !c.fits(n) {
			n = max(maxLine-len(cutMark)-c.line, 0)
		}
		if n > 0 {
			c.show(p[:n])
			c.marks, p = 0, p[n:]
			continue
		}
		if p[0] == '\r' && len(p) > 1 && p[1] == '\n' { // an agent's line end
			p = p[1:]
			continue
		}
		if !utf8.FullRune(p) || p[0] == '\r' && len(p) == 1 {
			c.part = p
			break
		}
		r, size := utf8.DecodeRune(p)
		c.char(r, p[:size])
		p = p[size:]
	}
	return len(chunk), drain(c.to, &c.out)
}

// Close writes what waits, which was the beginning of a character and is none, and ends a
// line that was begun after a prefix. It does not close the underlying writer.
func (c *cleaner) Close() error {
	for _, b := range c.part {
		r := utf8.RuneError
		if b == '\r' {
			r = '\r'
		}
		c.char(r, []byte{b})
	}
	c.part = nil
	if c.inLine && c.prefix != "" {
		c.char('\n', nil)
	}
	return drain(c.to, &c.out)
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

// put writes text to the line, in rows.
func (c *cleaner) put(text []byte) {
	if c.columns == 0 {
		c.out = append(c.out, text...)
		return
	}
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if c.column += Cells(r); c.column > c.columns && c.column > Cells(r) {
			c.out = append(append(c.out, '\n'), c.prefix...)
			c.column = Cells(r)
		}
		c.out = append(c.out, text[:size]...)
		text = text[size:]
	}
}

// Cells is how many columns of a terminal a character may take. It guesses high,
// since a row that is broken early does no harm and one that wraps does.
func Cells(r rune) int {
	const tab = 8
	switch {
	case r == '\t':
		return tab
	case r < 0x1100 || r == '…':
		return 1
	}
	return 2
}

// Fold breaks a line of safe text into rows of at most so many columns, each
// but the first behind indent, between words where it can. What a terminal wraps
// by itself begins at its left edge, and there an agent could let it look like a
// line of abl's own.
func Fold(text string, columns int, indent string) string {
	c := cleaner{prefix: indent, columns: max(columns, 1)}
	for i, word := range strings.Split(text, " ") {
		if i > 0 && c.column+1+width(word) > columns {
			c.out = append(append(c.out, '\n'), indent...)
			c.column = 0
		} else if i > 0 {
			c.put([]byte{' '})
		}
		c.put([]byte(word))
	}
	return string(c.out)
}

func width(text string) (columns int) {
	for _, r := range text {
		columns += Cells(r)
	}
	return columns
}
