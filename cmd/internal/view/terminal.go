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

// Terminal is a stream that is a terminal, nil for any other.
func Terminal(stream any) *os.File {
	if f, ok := stream.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

// Columns is the width of the terminal behind w, 0 when there is none. It is asked for
// each time: a person may have changed it.
func Columns(w io.Writer) int {
	tty := Terminal(w)
	if tty == nil {
		return 0
	}
	columns, _, _ := term.GetSize(int(tty.Fd())) // -1 with an error
	return cmp.Or(max(columns, 0), usual)
}

// usual is how wide a terminal is that does not tell.
const usual = 80

// CanSteer says whether w is a terminal that knows how to move its cursor.
func CanSteer(w io.Writer) bool {
	t := os.Getenv("TERM")
	return Terminal(w) != nil && t != "" && t != "dumb"
}

// Redraw puts safe text on the screen of a terminal in the place of what is there.
func Redraw(w io.Writer, text string) {
	fmt.Fprint(w, "\x1b[H"+strings.ReplaceAll(text, "\n", "\x1b[K\n")+"\x1b[J")
}

// Coloured says whether what is written to w should be in colours.
func Coloured(w io.Writer) bool { return CanSteer(w) && os.Getenv("NO_COLOR") == "" }

// paint gives words their colour, or leaves them alone.
type paint bool

// in is text in the colour of a tone: the sixteen colours that every terminal
// has, so that the person's own scheme holds.
func (p paint) in(t tone, text string) string {
	code := map[tone]string{good: "32", bad: "31", warn: "33", quiet: "2"}[t]
	if !p || code == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// cut shortens text to at most width columns and shows that it did.
func cut(text string, width int) string {
	used, fits := 0, 0 // columns; bytes that leave room for the mark
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
