package verdict

import (
	"fmt"
	"regexp"
	"strings"
)

// span is a code block at the top of a file: the lines of its fences.
type span struct{ first, last int }

var example = regexp.MustCompile(`(?i)\b(?:format|example|template)\b`)

// unwrap takes away the fences of code blocks that stand around entries, as chat
// models like to write them: one around the whole file, or one around each entry
// with nothing but titles between. Beside any other text, or under a title that
// calls it an example, a code block is a quotation and stays one.
func unwrap(lines []string) {
	const layers = 3
	for range layers {
		blocks, ok := wrappings(lines)
		if !ok {
			return
		}
		for _, b := range blocks {
			if holdsSpec(lines[b.first+1 : b.last]) {
				lines[b.first], lines[b.last] = "", ""
			}
		}
	}
}

// wrappings finds the code blocks of a file that has no other text. Fences nest
// here: a model that wraps its answer does not care for those inside.
func wrappings(lines []string) (blocks []span, ok bool) {
	var open []fence
	for i, line := range lines {
		f, isFence := fenceOf(line)
		switch depth := len(open); {
		case isFence && depth > 0 && open[depth-1].closedBy(line):
			if open = open[:depth-1]; depth == 1 {
				blocks[len(blocks)-1].last = i
			}
		case isFence:
			if open = append(open, f); depth == 0 {
				blocks = append(blocks, span{first: i})
			}
		case depth == 0 && strings.TrimSpace(line) != "" && (!decoration(line) || example.MatchString(line)):
			return nil, false
		}
	}
	return blocks, len(open) == 0 && len(blocks) > 0
}

func holdsSpec(lines []string) bool {
	for _, line := range lines {
		if l, ok := labelOf(line); ok && l.field == specField {
			return true
		}
	}
	return false
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
		line, _ := p.view(j)
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
		if line, _ := p.view(j); f.closedBy(line) {
			return j
		}
	}
	p.unclosed[f.mark] = f.size
	return -1
}

// comment takes a comment, <!-- … -->, that begins with line i: right after a
// line of a value it belongs to that value, elsewhere it is left out. It returns
// the last line taken.
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
		line, _ = p.view(j)
	}
}
