package ledger

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Table shows groups as aligned text, one a line, and their sum below when there
// are several. A question mark stands for what some rows did not tell.
func Table(by By, groups []Group, all Sum) string {
	lines := [][]string{{string(by), "rows", "input", "cached", "candidates", "thoughts", "tool", "total", "from cache", "USD"}}
	for _, g := range groups {
		lines = append(lines, cells(g.Key, g.Sum))
	}
	if len(groups) != 1 {
		lines = append(lines, cells("all", all))
	}
	text := align(lines)
	if all.Unknown > 0 {
		text += fmt.Sprintf("%d of %d rows tell no count\n", all.Unknown, all.Rows)
	}
	return text
}

func cells(key string, s Sum) []string {
	line := []string{cleanText(key), strconv.Itoa(s.Rows)}
	for _, c := range []Counter{s.Input, s.Cached, s.Candidates, s.Thoughts, s.Tool, s.Total} {
		line = append(line, c.String())
	}
	return append(line, s.Share.String(), s.Cost.String())
}

// align sets the first column left and the others right.
func align(lines [][]string) string {
	widths := make([]int, len(lines[0]))
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, line := range lines {
		for i, cell := range line {
			space := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				b.WriteString(cell + space)
			} else {
				b.WriteString("  " + space + cell)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}
