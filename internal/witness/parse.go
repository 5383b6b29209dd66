package witness

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// parser walks over an output once.
type parser struct {
	Document
	n      int    // of the line
	latest int    // index of the test line that a block or comment would belong to, -1 for none
	block  *block // that we are in
	seen   map[int]int

	noise   run
	inner   run // indented lines that belong to no block
	surplus run // test lines beyond MaxPoints
}

// run counts lines of a kind.
type run struct{ first, count int }

func (r *run) add(line int) {
	if r.count++; r.count == 1 {
		r.first = line
	}
}

// Parse reads an output. It never fails: what it cannot understand is a
// Problem. whole says that the program ended by itself and all that it printed
// is there; otherwise the output is in doubt, and a last line without end not
// read.
func Parse(data []byte, whole bool) Document {
	p := &parser{latest: -1, seen: map[int]int{}}
	p.Plan, p.byID, p.mention = -1, map[string][]int{}, map[string]int{}
	if len(data) > MaxBytes {
		data, whole = data[:MaxBytes], false
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	for len(data) > 0 {
		line, rest, ended := bytes.Cut(data, []byte("\n"))
		if !ended && !whole {
			break
		}
		p.n++
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
	version = regexp.MustCompile(`(?i)^TAP version (\d{1,4})$`)
	plan    = regexp.MustCompile(`^1\.\.(\d{1,7})(?: *#.*)?$`)
	bail    = regexp.MustCompile(`(?i)^ *Bail out!`)
)

// line takes the next one.
func (p *parser) line(s string, long bool) {
	if p.block != nil && p.inBlock(s) {
		return
	}
	trimmed := strings.TrimSpace(s)
	switch {
	case trimmed == "":
	case bail.MatchString(s):
		p.problem(p.n, true, "it gave up: %s", cut(trimmed, maxText))
	case s[0] == ' ':
		if p.latest >= 0 && trimmed == "---" {
			p.block = &block{line: p.n, indent: indent(s)}
			return
		}
		p.unread(&p.inner, s)
	case s[0] == '#':
		if p.latest >= 0 {
			p.Points[p.latest].comment(strings.TrimPrefix(trimmed[1:], " "))
		}
		return
	default:
		p.statement(strings.TrimRight(s, " "), long)
		return
	}
	p.latest = -1
}

// statement takes a line that stands at the margin.
func (p *parser) statement(s string, long bool) {
	p.latest = -1
	if point, ok := readPoint(s); ok {
		point.Line, point.Long = p.n, long
		p.point(point)
	} else if m := plan.FindStringSubmatch(s); m != nil {
		p.plan(m[1])
	} else if m := version.FindStringSubmatch(s); m != nil {
		p.Version, _ = strconv.Atoi(m[1])
	} else if !strings.HasPrefix(s, "pragma ") {
		p.unread(&p.noise, s)
	}
}

func (p *parser) plan(digits string) {
	n, _ := strconv.Atoi(digits)
	if p.Plan >= 0 {
		p.problem(p.n, true, "this is a second plan: run.sh prints one, for all that it tests")
		return
	}
	p.Plan = n
}

func (p *parser) point(point Point) {
	if len(p.Points) == MaxPoints {
		p.surplus.add(p.n)
		return
	}
	if before := p.seen[point.Number]; point.Number > 0 && before > 0 {
		p.problem(p.n, true, "number %d was on line %d already", point.Number, before)
	}
	p.seen[point.Number] = p.n
	p.latest = len(p.Points)
	p.Points = append(p.Points, point)
	for _, id := range point.IDs {
		p.byID[id] = append(p.byID[id], p.latest)
	}
	if len(point.IDs) == 0 && !point.OK {
		p.problem(p.n, true, "this line is not ok and names no contract")
	}
}

// unread takes a line that is not read.
func (p *parser) unread(r *run, s string) {
	r.add(p.n)
	if len(p.mention) < MaxPoints {
		for _, id := range anyID.FindAllString(s, maxIDs) {
			if id = strings.ToUpper(id); p.mention[id] == 0 {
				p.mention[id] = p.n
			}
		}
	}
}
