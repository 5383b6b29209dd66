// Package sanitize makes what an agent wrote safe to show at a terminal: nothing
// in it can move the cursor, set the title or the clipboard, hide text, or look
// like a line of abl's own. What is taken out stays visible as an escape such
// as \x1b.
package sanitize

import (
	"bytes"
	"fmt"
	"unicode"
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
func String(s string) string {
	c := cleaner{out: make([]byte, 0, len(s))}
	c.text([]byte(s))
	c.rest()
	return string(c.out)
}

// cleaner is the one filter behind String and Writer. Between chunks it holds
// the beginning of a character, and where on the line it is.
type cleaner struct {
	prefix  string
	out     []byte
	part    []byte // beginning of a character that the next chunk may complete
	line    int    // bytes shown of this line
	marks   int    // combining marks since the last base character
	inLine  bool   // the line has begun
	dropped bool   // the line was cut
}

// text takes the next chunk.
func (c *cleaner) text(p []byte) {
	if len(c.part) > 0 {
		p = append(c.part, p...)
		c.part = nil
	}
	for len(p) > 0 {
		if !utf8.FullRune(p) {
			c.part = append([]byte(nil), p...)
			return
		}
		r, size := utf8.DecodeRune(p)
		c.char(r, p[:size])
		p = p[size:]
	}
}

// rest ends the text: what was the beginning of a character is none.
func (c *cleaner) rest() {
	for _, b := range c.part {
		c.char(utf8.RuneError, []byte{b})
	}
	c.part = nil
}

func (c *cleaner) char(r rune, raw []byte) {
	if r == '\n' {
		c.start()
		c.out = append(c.out, '\n')
		c.line, c.marks, c.inLine, c.dropped = 0, 0, false, false
		return
	}
	c.show(c.visible(r, raw))
}

// visible is the form in which a character may be shown.
func (c *cleaner) visible(r rune, raw []byte) []byte {
	switch {
	case r >= ' ' && r <= '~': // nearly all there is; the tables below are slow
		c.marks = 0
		return raw
	case r == utf8.RuneError && len(raw) == 1:
		c.marks = 0
		return fmt.Appendf(nil, `\x%02x`, raw[0])
	case unicode.Is(unicode.M, r):
		if c.marks++; c.marks <= maxMarks && c.line > 0 && !blank(r) {
			return raw
		}
	default:
		c.marks = 0
		if r == '\t' || plain(r) {
			return raw
		}
	}
	if r < 0x100 {
		return fmt.Appendf(nil, `\x%02x`, r)
	}
	return fmt.Appendf(nil, `\u{%x}`, r)
}

// plain says whether a character does nothing but be seen. What Unicode calls
// graphic leaves out controls, formats (direction, zero width, tags), line and
// paragraph separators, private use and what is not assigned.
func plain(r rune) bool {
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
	if c.line+len(text) > maxLine-len(cutMark) {
		c.dropped = true
		pad := maxLine - len(cutMark) - c.line
		text = append(bytes.Repeat([]byte{' '}, pad), cutMark...)
	}
	c.line += len(text)
	c.out = append(c.out, text...)
}

// start begins a line with the prefix.
func (c *cleaner) start() {
	if !c.inLine {
		c.out = append(c.out, c.prefix...)
		c.inLine = true
	}
}
