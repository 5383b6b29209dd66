package spec

import (
	"regexp"
	"strings"
)

var (
	ruler      = regexp.MustCompile(`^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$`)
	actionHead = regexp.MustCompile(`(?i)^(?:action|request|input|when|given|stimulus|call|do)\b`)
	resultHead = regexp.MustCompile(`(?i)^(?:expected|expect|result|response|then|output|outcome|answer|returns?)\b`)
)

// isTable reports whether a table's head stands at line i.
func isTable(lines []string, kinds []kind, i int) bool {
	return i+1 < len(lines) && kinds[i+1] == plain && strings.Contains(lines[i], "|") &&
		strings.Contains(lines[i+1], "|") && ruler.MatchString(lines[i+1])
}

// table reads the rows of the table whose head stands at line i, and returns its
// last line.
func (f *finder) table(lines []string, kinds []kind, i int) int {
	pick := columnsOf(cells(lines[i]), f.sure)
	for i += 2; i < len(lines) && kinds[i] == plain && strings.Contains(lines[i], "|"); i++ {
		if action, result, ok := pick(cells(lines[i])); ok {
			f.add(i, action, result, strings.TrimSpace(lines[i]))
		}
	}
	return i - 1
}

// columnsOf decides by a table's head how its rows are read: by the columns for
// action and result, else by the arrow in a cell, else, when we are sure to be
// among contracts and there are two columns, as action and result.
func columnsOf(head []string, sure bool) func(row []string) (action, result string, ok bool) {
	a, r := -1, -1
	for i, name := range head {
		name = tidy(name)
		if a < 0 && actionHead.MatchString(name) {
			a = i
		} else if r < 0 && resultHead.MatchString(name) {
			r = i
		}
	}
	named := a >= 0 && r >= 0
	if !named {
		a, r = 0, 1
	}
	return func(row []string) (action, result string, ok bool) {
		if !named {
			for _, cell := range row {
				if action, result, ok = split(cell); ok {
					return action, result, true
				}
			}
		}
		if !named && (!sure || len(head) != 2) || len(row) <= max(a, r) {
			return "", "", false
		}
		return tidy(row[a]), tidy(row[r]), true
	}
}

// cells takes a row apart; "\|" is a bar inside a cell.
func cells(row string) []string {
	const bar = "\x00" // no spec has a NUL
	row = strings.ReplaceAll(strings.TrimSpace(row), `\|`, bar)
	row = strings.TrimSuffix(strings.TrimPrefix(row, "|"), "|")
	var out []string
	for cell := range strings.SplitSeq(row, "|") {
		out = append(out, strings.TrimSpace(strings.ReplaceAll(cell, bar, "|")))
	}
	return out
}
