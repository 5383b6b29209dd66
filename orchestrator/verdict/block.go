package verdict

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// example is how text announces entries that nobody observed.
var example = regexp.MustCompile(`(?i)\b(?:formats?|examples?|templates?|samples?)\b`)

// nesting finds the fences that stand around entries: chat models wrap an answer
// as a whole, or each entry, and do not care for the fences inside.
func nesting(lines []string) (closes map[int]int, specs []int) {
	closes = map[int]int{}
	var open []int
	for i, line := range lines {
		if _, is := fenceOf(line); !is {
			if l, ok := labelOf(line); ok && l.field == specField {
				specs = append(specs, i)
			}
			continue
		}
		if depth := len(open); depth > 0 && fenceAt(lines, open[depth-1]).closedBy(line) {
			closes[open[depth-1]] = i
			open = open[:depth-1]
			continue
		}
		open = append(open, i)
	}
	return closes, specs
}

func fenceAt(lines []string, i int) fence {
	f, _ := fenceOf(lines[i])
	return f
}

// unwrap takes away the fences of a code block around entries. Below words that
// call it an example a code block is a quotation and stays one.
func (p *parser) unwrap(i int) bool {
	end, closed := p.closes[i]
	next, _ := slices.BinarySearch(p.specs, i)
	if p.open != nil || !closed || p.example || next == len(p.specs) || p.specs[next] > end {
		return false
	}
	p.lines[i], p.lines[end] = "", ""
	p.ends[end] = true
	return true
}

// block takes a code block: the lines of one inside an entry belong to the
// field before it, one outside is left out. Nothing in it is a label. It
// returns the last line taken.
func (p *parser) block(i int, f fence) int {
	end := p.end(i, f)
	if end < 0 {
		return i
	}
	if p.open != nil {
		p.fenced = append(p.fenced, i+1)
		if program(f.info, p.lines[i+1:end]) {
			p.problem(i+1, fmt.Sprintf("%s holds a code block, which does not reach the Builder", p.open.last))
			p.open.add(LeftOut("a code block"))
			return end
		}
	}
	p.take(i+1, end, "a code block")
	return end
}

// take gives lines in which nothing is a label to the open entry; without one
// they are left out, and an entry among them is named.
func (p *parser) take(from, to int, where string) {
	for j := from; j < to; j++ {
		line := p.lines[j]
		if p.open != nil {
			p.open.add(line)
		} else if l, ok := labelOf(line); ok && !l.bare {
			p.problem(j+1, "an entry inside "+where+" is not read")
			break
		}
	}
}

// end finds the line that closes a fence, or -1.
func (p *parser) end(i int, f fence) int {
	if size, known := p.unclosed[f.mark]; known && f.size >= size {
		return -1
	}
	for j := i + 1; j < len(p.lines); j++ {
		if f.closedBy(p.lines[j]) {
			return j
		}
	}
	p.unclosed[f.mark] = f.size
	return -1
}

// comment takes a comment, <!-- … -->, that begins with line i: in a value it
// belongs to that value, elsewhere it is left out. It returns the last line taken.
func (p *parser) comment(i int, line string) (last int, ok bool) {
	if !strings.HasPrefix(strings.TrimSpace(line), "<!--") || p.endless {
		return i, false
	}
	last, after := p.commentEnd(i, line)
	inside := p.open != nil && p.open.takes(line)
	if last < 0 || strings.TrimSpace(after) != "" && !inside {
		return i, false
	}
	if inside {
		p.take(i, last+1, "")
		return last, true
	}
	p.finish()
	p.take(i, last+1, "a comment")
	return last, true
}

// commentEnd finds the line that closes a comment and what follows on it.
func (p *parser) commentEnd(i int, line string) (last int, after string) {
	_, line, _ = strings.Cut(line, "<!--")
	for j := i; ; {
		if _, after, found := strings.Cut(line, "-->"); found {
			return j, after
		}
		if j++; j == len(p.lines) {
			p.endless = true
			return -1, ""
		}
		line = p.lines[j]
	}
}
