package view

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"

	"abl/internal/redact"

	"golang.org/x/term"
)

// Terminal returns the stream as a file if it is a terminal, and nil otherwise.
func Terminal(stream any) *os.File {
	if f, ok := stream.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

// Columns returns the current width of the terminal behind w, 0 if w is not a terminal.
func Columns(w io.Writer) int {
	tty := Terminal(w)
	if tty == nil {
		return 0
	}
	columns, _, _ := term.GetSize(int(tty.Fd())) // -1 with an error
	return cmp.Or(max(columns, 0), defaultColumns)
}

// defaultColumns is the width of a terminal that does not report one.
const defaultColumns = 80

// CanSteer reports whether w is a terminal with cursor movement.
func CanSteer(w io.Writer) bool {
	t := os.Getenv("TERM")
	return Terminal(w) != nil && t != "" && t != "dumb"
}

// Redraw replaces the screen of a terminal with text, which the caller has redacted.
func Redraw(w io.Writer, text string) {
	fmt.Fprint(w, "\x1b[H"+strings.ReplaceAll(text, "\n", "\x1b[K\n")+"\x1b[J")
}

// Coloured reports whether output to w should have colours.
func Coloured(w io.Writer) bool { return CanSteer(w) && os.Getenv("NO_COLOR") == "" }

// paint colours text if it is true.
type paint bool

// in returns text in the colour of a tone. It uses the sixteen standard colours, which follow the
// user's colour scheme.
func (p paint) in(t tone, text string) string {
	code := map[tone]string{good: "32", bad: "31", warn: "33", quiet: "2"}[t]
	if !p || code == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// cut shortens text to at most width columns and ends it with "…".
func cut(text string, width int) string {
	used, fits := 0, 0 // columns; bytes that leave room for the "…"
	for i, r := range text {
		if used+1 <= width {
			fits = i
		}
		if used += redact.Cells(r); used > width {
			if width < 1 {
				return ""
			}
			return text[:fits] + "…"
		}
	}
	return text
}
