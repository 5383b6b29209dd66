package witness

import (
	"slices"
	"strings"
)

// end looks at the output as a whole.
func (p *parser) end(whole bool) {
	if p.block != nil {
		p.problem(p.block.line, true, "the block that begins here has no end (...): what stands below it may be a quotation")
		p.close()
	}
	if !whole {
		p.problem(p.n, true, "the output was cut here, or its program stopped")
	}
	if p.surplus.count > 0 {
		p.problem(p.surplus.first, true, "there are more than %d test lines", MaxPoints)
	}
	switch {
	case p.Plan < 0:
		p.problem(0, true, "there is no plan (1..n): nobody can tell that all tests were run")
	case p.Plan == 0:
		p.problem(0, true, "the plan says that nothing is tested")
	case p.Plan != len(p.Points)+p.surplus.count:
		p.problem(0, true, "the plan says %d, there are %d test lines", p.Plan, len(p.Points)+p.surplus.count)
	}
	if p.Plan >= 0 {
		for _, point := range p.Points {
			if point.Number < 0 || point.Number > p.Plan {
				p.problem(point.Line, true, "the number of this line is not in the plan 1..%d", p.Plan)
				break
			}
		}
	}
	if p.noise.count > 0 {
		p.problem(p.noise.first, false, "not TAP, and not read (%d such lines)", p.noise.count)
	}
	if p.inner.count > 0 {
		p.problem(p.inner.first, false, "indented, so a subtest's, and not read (%d such lines)", p.inner.count)
	}
	slices.SortStableFunc(p.Problems, func(a, b Problem) int {
		switch {
		case a.Doubt == b.Doubt:
			return a.Line - b.Line
		case a.Doubt:
			return -1
		}
		return 1
	})
	for _, point := range p.Points {
		for i := range point.Fields {
			point.Fields[i].Value = value(point.Fields[i].Value)
		}
	}
}

func indent(s string) int { return len(s) - len(strings.TrimLeft(s, " ")) }
