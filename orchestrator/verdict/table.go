package verdict

import (
	"regexp"
	"strings"
)

var (
	lineBreak = regexp.MustCompile(`(?i)<br ?/?>`)
	dividing  = regexp.MustCompile(`^ *\|?(?: *:?-+:? *\|)+ *(?::?-+:? *)?$`)
)

// cells splits a row of a Markdown table.
func cells(line string) []string {
	line = strings.TrimSpace(line)
	line = strings.TrimPrefix(line, "|")
	var all []string
	var cell strings.Builder
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == '\\' && i+1 < len(line) && line[i+1] == '|':
			cell.WriteByte('|')
			i++
		case line[i] == '|':
			all = append(all, strings.TrimSpace(cell.String()))
			cell.Reset()
		default:
			cell.WriteByte(line[i])
		}
	}
	if last := strings.TrimSpace(cell.String()); last != "" {
		all = append(all, last)
	}
	return all
}

// columnOf is the field that a cell names.
func columnOf(cell string) (field, bool) {
	return fieldOf(strings.Trim(plainHead(cell), " *_`:："))
}

// header finds the columns of the three fields in the first row of a table, -1
// for those that it lacks. A table without SPEC is no list of entries.
func header(line string) (at [3]int, ok bool) {
	at = [3]int{-1, -1, -1}
	found := 0
	for i, c := range cells(line) {
		if f, is := columnOf(c); is && at[f] < 0 {
			at[f] = i
			found++
		}
	}
	return at, found > 1 && at[specField] >= 0
}

// table reads a table of entries that begins at line i: one entry a row. It
// returns the last line taken.
func (p *parser) table(i int, line string) (last int, ok bool) {
	if !strings.Contains(line, "|") || i+1 >= len(p.lines) {
		return i, false
	}
	at, ok := header(line)
	if next, _ := p.view(i + 1); !ok || !dividing.MatchString(next) {
		return i, false
	}
	p.finish()
	for i += 2; i < len(p.lines); i++ {
		row, _ := p.view(i)
		if !strings.Contains(row, "|") {
			break
		}
		p.row(i, row, at)
	}
	return i - 1, true
}

// row makes an entry of a row.
func (p *parser) row(i int, line string, at [3]int) {
	c := cells(line)
	p.open = &draft{line: i + 1}
	for f, col := range at {
		if col < 0 || col >= len(c) {
			continue
		}
		p.open.start(label{field: field(f)})
		for _, l := range strings.Split(lineBreak.ReplaceAllString(c[col], "\n"), "\n") {
			p.open.add(l)
		}
	}
	p.finish()
}
