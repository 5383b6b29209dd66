package view

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"abl/internal/redact"
	"abl/internal/wording"
	"abl/roles/agent"
)

// Transcript prints the messages of an agent. Each row begins with the agent's role, so that an agent
// cannot imitate abl's own lines.
type Transcript struct {
	Out     io.Writer
	Safe    *redact.Sanitizer
	Who     string // a role
	Columns int    // of the terminal; 0 wraps nothing
	Colour  bool
	Shown   int // messages so far
}

// Limits on a tool's result: lines, and characters per line.
const (
	shownRows = 6
	shownCols = 300
)

// Heading prints a line from abl, which begins with a rule.
func (t *Transcript) Heading(text string) {
	fmt.Fprintf(t.Out, "── %s\n", t.Safe.Line(text))
}

// Show prints a message: text in full, a tool's call on one line, a tool's result shortened.
func (t *Transcript) Show(m agent.Message) {
	t.Shown++
	lines := strings.Split(t.Safe.String(strings.Trim(m.Text+"\n"+m.Detail, "\n")), "\n")
	switch m.Kind {
	case agent.Said:
		t.rows(lines, "", calm)
	case agent.Called:
		t.rows([]string{"> " + t.Safe.Line(m.Text)}, "", calm)
	case agent.Returned:
		if more := len(lines) - shownRows; more > 1 {
			end := lines[len(lines)-1] // begins with "…" if the message itself was cut
			lines = append(lines[:shownRows], fmt.Sprintf("… %d more lines", more))
			if strings.HasPrefix(end, "… ") {
				lines = append(lines, end)
			}
		}
		for i, line := range lines {
			lines[i] = wording.Cut(line, shownCols)
		}
		t.rows(lines, "    ", quiet)
	}
}

// rows prints lines, folded to the terminal's width.
func (t *Transcript) rows(lines []string, indent string, tone tone) {
	begin := t.Who + " │ " + indent
	room := t.Columns - utf8.RuneCountInString(begin)
	for _, line := range lines {
		if room > 0 {
			line = redact.Fold(line, room, begin)
		}
		fmt.Fprintln(t.Out, paint(t.Colour).in(tone, begin+line))
	}
}
