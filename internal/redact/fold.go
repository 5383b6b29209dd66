package redact

import (
	"strings"
	"unicode/utf8"
)

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
	var b strings.Builder
	used := 0
	for i, word := range strings.Split(text, " ") {
		switch {
		case i == 0:
		case used+1+width(word) <= columns:
			b.WriteByte(' ')
			used++
		default:
			b.WriteString("\n" + indent)
			used = 0
		}
		for _, r := range word {
			if used += Cells(r); used > columns && used > Cells(r) {
				b.WriteString("\n" + indent)
				used = Cells(r)
			}
			b.WriteRune(r)
		}
	}
	return b.String()
}

func width(text string) (columns int) {
	for _, r := range text {
		columns += Cells(r)
	}
	return columns
}

// Fold makes the writer break lines into rows of at most so many columns, the
// prefix of each not counted. 0 is what it does without: no breaking.
func (w *cleanWriter) Fold(columns int) { w.c.columns = max(columns, 0) }

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
