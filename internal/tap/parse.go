package tap

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"abl/internal/wording"
)

// parser walks over an output once.
type parser struct {
	Document
	n     int    // number of the line
	raw   []byte // the line as printed
	block *block // the open block, nil outside
	open  bool   // a block or comment here belongs to the last point
	seen  map[int]int
	noise []int // numbers of lines that are not TAP, or indented outside of a block
}

// Parse parses an output. It never fails: it adds a Problem for each part that it cannot
// understand. whole says that the program ended on its own and printed everything. Otherwise the
// output is in doubt, and Parse ignores an incomplete last line.
func Parse(data []byte, whole bool) Document {
	p := &parser{Document: Document{Plan: -1, byID: map[string][]Point{}}, seen: map[int]int{}}
	if len(data) > MaxBytes {
		data, whole = data[:MaxBytes], false
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	for len(data) > 0 {
		if len(p.Points) == MaxPoints {
			whole = false
			break
		}
		line, rest, ended := bytes.Cut(data, []byte("\n"))
		if !ended && !whole {
			break
		}
		p.n++
		p.raw = line
		p.line(readable(line))
		data = rest
	}
	p.end(whole)
	return p.Document
}

func (p *parser) problem(line int, doubt bool, format string, args ...any) {
	if len(p.Problems) < maxProblems {
		p.Problems = append(p.Problems, Problem{Line: line, Text: fmt.Sprintf(format, args...), Doubt: doubt})
	}
}

var (
	version = regexp.MustCompile(`(?i)^(?:TAP version \d{1,4}$|pragma )`)
	plan    = regexp.MustCompile(`^1\.\.(\d{1,7})(?: *#.*)?$`)
	bail    = regexp.MustCompile(`(?i)^ *Bail out!`)
)

// line reads the next line.
func (p *parser) line(s string, long bool) {
	if p.block != nil && p.inBlock(s) {
		return
	}
	trimmed := strings.TrimSpace(s)
	open := p.open
	p.open = false
	switch {
	case trimmed == "":
	case bail.MatchString(s):
		p.problem(p.n, true, "the tests bailed out: %s", wording.Short(trimmed, maxText))
	case s[0] == '#':
		p.open = open
		if open {
			p.latest().comment(strings.TrimPrefix(trimmed[1:], " "))
		}
	case s[0] == ' ' && open && trimmed == "---":
		p.block = &block{line: p.n, indent: indent(s)}
	case s[0] == ' ':
		p.noise = append(p.noise, p.n)
	default:
		p.statement(strings.TrimRight(s, " "), long)
	}
}

// latest returns the last test line.
func (p *parser) latest() *Point { return &p.Points[len(p.Points)-1] }

// statement reads a line without indentation.
func (p *parser) statement(s string, long bool) {
	if point, ok := readPoint(s); ok {
		point.Line, point.Text, point.Long = p.n, s, long
		point.Printed = string(bytes.TrimRight(p.raw, " \t\r"))
		p.point(point)
	} else if m := plan.FindStringSubmatch(s); m != nil && p.Plan >= 0 {
		p.problem(p.n, true, "this is a second plan, want one plan for all tests")
	} else if m != nil {
		p.Plan, _ = strconv.Atoi(m[1])
	} else if !version.MatchString(s) {
		p.noise = append(p.noise, p.n)
	}
}

// point adds a test line.
func (p *parser) point(point Point) {
	if before := p.seen[point.Number]; point.Number > 0 && before > 0 {
		p.problem(p.n, true, "line %d already has the number %d", before, point.Number)
	}
	p.seen[point.Number] = p.n
	p.Points, p.open = append(p.Points, point), true
	if len(point.IDs) == 0 && !point.OK {
		p.problem(p.n, true, "this line is not ok and names no contract")
	}
}

// end checks the output as a whole.
func (p *parser) end(whole bool) {
	if p.block != nil {
		p.problem(p.block.line, true, "the block that begins here has no end (...), so the lines below may be output of the app")
		p.close()
	}
	if !whole {
		p.problem(p.n, true, "the output ends here, because it was cut or its program was stopped")
	}
	switch {
	case p.Plan < 0:
		p.problem(0, true, "the plan (1..n) is missing, so some tests may not have run")
	case p.Plan == 0:
		p.problem(0, true, "the plan has no tests")
	case p.Plan != len(p.Points):
		p.problem(0, true, "the plan has %s, but the output has %s",
			wording.Count(p.Plan, "test"), wording.Count(len(p.Points), "test line"))
	}
	beyond := func(point Point) bool { return p.Plan >= 0 && (point.Number < 0 || point.Number > p.Plan) }
	if i := slices.IndexFunc(p.Points, beyond); i >= 0 {
		p.problem(p.Points[i].Line, true, "the number of this line is not in the plan 1..%d", p.Plan)
	}
	if len(p.noise) > 0 {
		p.problem(p.noise[0], false, "not TAP, so ignored (%s)", wording.Count(len(p.noise), "line"))
	}
	slices.SortStableFunc(p.Problems, func(a, b Problem) int { return a.Line - b.Line })
	for _, point := range p.Points {
		for key, text := range point.Fields {
			point.Fields[key] = value(text)
		}
		for _, id := range point.IDs {
			p.byID[id] = append(p.byID[id], point)
		}
	}
}
