package view

import (
	"slices"
	"strings"

	"abl/internal/redact"
)

// Table is rows of cells below a header. The caller has redacted the cells.
type Table struct {
	Header []string
	Rows   [][]string
	Flex   int   // the column whose cells are folded if the table is wider than the terminal
	Right  bool  // columns after the first are numbers, and aligned right
	Drop   []int // columns to leave out, in this order, until a table of numbers fits
}

// leastCell is how narrow a folded column may get.
const leastCell = 16

// gap separates two columns.
const gap = "  "

// Text lays the table out for a terminal of that many columns; 0 means no limit. With colours, verdicts
// are coloured.
func (t Table) Text(columns int, colours bool) string {
	t = t.fit(columns)
	widths, all := t.widths(), 0
	for _, w := range widths {
		all += w + len(gap)
	}
	if over := all - len(gap) - columns; columns > 0 && over > 0 && !t.Right {
		widths[t.Flex] = max(widths[t.Flex]-over, min(leastCell, widths[t.Flex]))
	}
	var b strings.Builder
	t.row(&b, t.Header, widths, false)
	for _, r := range t.Rows {
		t.row(&b, r, widths, colours)
	}
	return b.String()
}

// fit returns the table without the columns of Drop that do not fit.
func (t Table) fit(columns int) Table {
	gone := []int{}
	for _, at := range t.Drop {
		sum := -len(gap)
		for i, w := range t.widths() {
			if !slices.Contains(gone, i) {
				sum += w + len(gap)
			}
		}
		if columns <= 0 || sum <= columns {
			break
		}
		gone = append(gone, at)
	}
	without := func(cells []string) (kept []string) {
		for i, c := range cells {
			if !slices.Contains(gone, i) {
				kept = append(kept, c)
			}
		}
		return kept
	}
	t.Header = without(t.Header)
	t.Rows = slices.Clone(t.Rows)
	for i, r := range t.Rows {
		t.Rows[i] = without(r)
	}
	return t
}

func (t Table) widths() []int {
	widths := make([]int, len(t.Header))
	for _, r := range append([][]string{t.Header}, t.Rows...) {
		for i, c := range r {
			widths[i] = max(widths[i], cells(c))
		}
	}
	return widths
}

// row prints one row, in as many lines as its longest folded cell has.
func (t Table) row(b *strings.Builder, row []string, widths []int, colours bool) {
	parts, lines := make([][]string, len(row)), 1
	for i, c := range row {
		parts[i] = []string{c}
		if cells(c) > widths[i] {
			parts[i] = strings.Split(redact.Fold(c, widths[i], ""), "\n")
		}
		lines = max(lines, len(parts[i]))
	}
	for n := range lines {
		var line strings.Builder
		for i := range row {
			text := ""
			if n < len(parts[i]) {
				text = parts[i][n]
			}
			pad := strings.Repeat(" ", max(widths[i]-cells(text), 0))
			if text != "" {
				text = paint(colours).in(ToneOf(text), text)
			}
			if t.Right && i > 0 {
				text, pad = pad+text, ""
			}
			line.WriteString(text + pad + gap)
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// cells returns the width of a text on a terminal, in columns.
func cells(text string) (n int) {
	for _, r := range text {
		n += redact.Cells(r)
	}
	return n
}

// ToneOf returns the tone of a verdict or status, and calm for any other text.
func ToneOf(word string) tone {
	switch strings.ToLower(strings.TrimRight(word, "?")) {
	case "pass", "passed", "ok", "done", "made":
		return good
	case "fail", "stuck", "crash", "crashed", "failed", "damaged", "unsound":
		return bad
	case "unverified", "paused", "stale", "weak", "flaky", "refuted", "missing", "not read", "vacuous", "disputed", "unknown", "warning":
		return warn
	case "error":
		return bad
	}
	return calm
}

// verdictsAt are the verdicts that may begin an indented line of a report.
var verdictsAt = []string{"ok so far", "unverified", "FAIL", "pass", "ok", "weak"}

// Lines folds the lines of a text for a terminal of that many columns; 0 means no limit. It indents the
// folded parts. With colours, a verdict at the beginning of a line is coloured.
func Lines(text string, columns int, colours bool) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		rest := strings.TrimLeft(line, " ")
		indent := line[:len(line)-len(rest)]
		if room := columns - len(indent) - len(gap); room >= leastCell && cells(line) > columns {
			line = indent + redact.Fold(rest, room, indent+gap)
		}
		for _, word := range verdictsAt {
			if after, is := strings.CutPrefix(strings.TrimLeft(line, " "), word); is && strings.HasPrefix(after, gap) {
				line = indent + paint(colours).in(ToneOf(word), word) + after
				break
			}
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}
