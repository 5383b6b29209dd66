package spec

import (
	"regexp"
	"strings"
)

var (
	ruler     = regexp.MustCompile(`^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$`)
	lineBreak = regexp.MustCompile(`(?i)<br\s*/?>`)
)

// table is a table's head and rows.
type table struct {
	head  []string
	first int // index of the first row
	rows  [][]string
	last  int // index of the last line
}

// isTable reports whether a table's head stands at line i.
func isTable(m marks, i int) bool {
	return i+1 < len(m.kinds) && m.kinds[i+1] == m.kinds[i] && strings.Contains(m.texts[i], "|") &&
		strings.Contains(m.texts[i+1], "|") && ruler.MatchString(m.texts[i+1])
}

// readTable reads the table whose head stands at line i.
func readTable(m marks, i int) *table {
	t := &table{head: cells(m.texts[i]), first: i + 2}
	k := m.kinds[i]
	for i += 2; i < len(m.kinds) && m.kinds[i] == k && strings.Contains(m.texts[i], "|"); i++ {
		t.rows = append(t.rows, cells(m.texts[i]))
	}
	t.last = i - 1
	return t
}

// cells takes a row apart; "\|" is a bar inside a cell, and so is one in inline code.
func cells(row string) []string {
	row = strings.TrimPrefix(strings.TrimSpace(unquote(row)), "|")
	if strings.HasSuffix(row, "|") && !strings.HasSuffix(row, `\|`) {
		row = row[:len(row)-1]
	}
	var out []string
	var cell strings.Builder
	end := func() {
		out = append(out, strings.TrimSpace(lineBreak.ReplaceAllString(cell.String(), " ")))
		cell.Reset()
	}
	paired, inCode, escaped := strings.Count(row, "`")%2 == 0, false, false
	for _, c := range row {
		switch {
		case escaped:
			if c != '|' {
				cell.WriteRune('\\')
			}
			cell.WriteRune(c)
			escaped = false
			continue
		case c == '\\':
			escaped = true
			continue
		case c == '`':
			inCode = !inCode && paired
		case c == '|' && !inCode:
			end()
			continue
		}
		cell.WriteRune(c)
	}
	if escaped {
		cell.WriteRune('\\')
	}
	end()
	return out
}
