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
	// maxLine is the maximum length of a shown line in bytes, without the prefix.
	maxLine = 4 << 10
	// maxMarks is the maximum number of combining marks on one character. Zalgo text
	// covers the lines around it.
	maxMarks = 8
	cutMark  = "…(cut)"
)

// String makes text safe to display. It is idempotent: its escapes are plain text.
func String(s string) string { return clean(s, false) }

// Whole is String for text that is stored or parsed: it cuts no line and uses the escapes of JSON.
func Whole(s string) string { return clean(s, true) }

func clean(s string, log bool) string {
	var out strings.Builder // which does not fail
	c := cleaner{to: &out, log: log}
	c.Write([]byte(s))
	c.Close()
	return out.String()
}

// Line makes text safe and joins it to one line, so that no part of it looks like a line of abl.
func Line(s string) string { return String(strings.Join(strings.Fields(s), " ")) }

// cleaner implements String, Writer and Log. Between chunks it keeps an incomplete character and
// the position in the line.
type cleaner struct {
	to      io.Writer
	prefix  string // prefix of each line, trusted
	log     bool   // cut no line and keep JSON valid
	columns int    // width of a row, 0 to break no lines
	out     []byte
	part    []byte // an incomplete character or line end
	line    int    // number of bytes shown of this line
	marks   int    // combining marks since the last base character
	inLine  bool   // the prefix of the line was written
	dropped bool   // the rest of the line is cut
	column  int    // current column of the row
}

// Write cleans the next chunk. It keeps an incomplete character at the end for the next call.
func (c *cleaner) Write(chunk []byte) (int, error) {
	p := append(c.part, chunk...)
	c.part = nil
	for len(p) > 0 {
		n := printable(p) // the fast path: the tables below are slow
		if !c.dropped && !c.fits(n) {
			n = max(maxLine-len(cutMark)-c.line, 0)
		}
		if n > 0 {
			c.addOrCut(p[:n])
			c.marks, p = 0, p[n:]
			continue
		}
		if p[0] == '\r' && len(p) > 1 && p[1] == '\n' { // convert CRLF
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

// Close writes an incomplete character and ends an unfinished line with a prefix. It does not close
// the underlying writer.
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

// printable returns the number of bytes of printable ASCII at the beginning of p.
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
	c.addOrCut(c.visible(r, raw))
}

// visible returns the form in which a character is shown.
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

// escaped returns the JSON escape of a character.
func escaped(r rune) (text []byte) {
	for _, unit := range utf16.AppendRune(nil, r) {
		text = fmt.Appendf(text, `\u%04x`, unit)
	}
	return text
}

// Plain reports whether a character only displays itself. Unicode's graphic characters exclude
// controls, format characters (direction, zero width, tags), line and paragraph separators, private
// use and unassigned characters.
func Plain(r rune) bool {
	return unicode.IsGraphic(r) && !blank(r)
}

// blank reports whether a graphic character is invisible. It accepts the selector for coloured
// emoji, which is very common.
func blank(r rune) bool {
	const emoji, braille = '\uFE0F', '\u2800'
	return r != emoji && (r == braille || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point,
		unicode.Variation_Selector))
}

// addOrCut adds text to the line if it fits. Otherwise it adds the cut mark, always at the same column,
// so that String of a cut line cuts it there again.
func (c *cleaner) addOrCut(text []byte) {
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

// fits reports whether n more bytes fit on the line.
func (c *cleaner) fits(n int) bool {
	return c.log || !c.dropped && c.line+n <= maxLine-len(cutMark)
}

// start writes the prefix of a line.
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

// Cells returns the maximum number of terminal columns of a character. The estimate is high,
// because breaking a row early is harmless, but a row that wraps is not.
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

// Fold breaks a line of safe text into rows of at most columns columns, between words if possible.
// Each row after the first begins with indent. A row that the terminal wraps begins at the left
// edge, where it could look like a line of abl.
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
