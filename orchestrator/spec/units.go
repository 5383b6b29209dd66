package spec

import (
	"regexp"
	"strings"
)

// gather makes units of the lines.
func gather(m marks) []*unit {
	g := &gatherer{marks: m}
	for i := 0; i < len(m.kinds); i++ {
		i = g.line(i)
	}
	g.close()
	return g.units
}

type gatherer struct {
	marks
	units []*unit
	now   *unit // the one in the making
}

// line takes line i, and returns the last one taken.
func (g *gatherer) line(i int) int {
	line, k := g.texts[i], g.kinds[i]
	switch {
	case k == blank:
		if g.now != nil {
			g.now.gap = true
		}
	case k == heading:
		g.close()
		g.head(i)
	case (k == plain || k == code) && isTable(g.marks, i):
		g.close()
		t := readTable(g.marks, i)
		g.units = append(g.units, &unit{first: i, last: t.last, table: t, indent: columns(line)})
		return t.last
	case k == plain || k == code:
		if g.now == nil || !g.now.goesOn(line, k == code) {
			g.close()
			g.now = newUnit(i, line)
			g.now.code = k == code
			break
		}
		g.now.add(i, line)
	case k == body && g.now != nil && g.now.holds(line):
		g.now.body = true
		g.now.add(i, line)
	default:
		g.close()
	}
	return i
}

func (g *gatherer) close() {
	if g.now != nil {
		g.now.trim()
		g.units = append(g.units, g.now)
	}
	g.now = nil
}

// head makes a unit of a heading. One that is a label, "#### Input", takes what follows.
func (g *gatherer) head(i int) {
	name := g.names[i]
	u := newUnit(i, name)
	u.item, u.indent, u.head = false, 0, g.levels[i]
	u.cut = 0
	if before, _, ok := strings.Cut(g.texts[i], name); ok {
		u.cut = len([]rune(before))
	}
	if u.label.part == 0 {
		u.label, _ = labelOf(strings.TrimRight(tidy(name), ":") + ":")
	}
	if u.label.part != 0 {
		g.now = u
		return
	}
	g.units = append(g.units, u)
}

// holds decides whether a code block belongs to the unit before it.
func (u *unit) holds(line string) bool {
	switch {
	case u.body && !u.gap, u.open(), strings.HasSuffix(u.tail, ":"):
		return true
	}
	return !u.gap && u.arrow && columns(line) > u.indent
}

// wide is the length of lines that were broken because they became too long.
const wide = 55

// goesOn decides whether a line goes on with the unit.
func (u *unit) goesOn(line string, inBlock bool) bool {
	text := strings.TrimSpace(unquote(line))
	l, labelled := labelOf(text)
	switch {
	case itemMark(line) > 0:
		return false
	case labelled && !u.takes(l, columns(line) > u.indent):
		return false
	case startsWithArrow(text):
		return !u.arrow || !u.gap
	case u.open():
		return u.label.rest == "" && u.label.part != 0 || !hasArrow(text) // else that one is a contract, and this one lacks its result
	case u.gap:
		return false
	case u.head > 0:
		return true
	case u.bracket > 0 && strings.IndexAny(text, ")]}") == 0:
		return true
	case columns(line) > u.indent && u.arrow:
		return !hasArrow(text)
	case columns(line) > u.indent:
		return !strings.HasSuffix(u.tail, ":")
	}
	return !inBlock && u.wraps(text)
}

// takes decides whether a line with a label is none for this unit: "And" where
// nothing has a label, or the field of an answer below its contract.
func (u *unit) takes(l label, deeper bool) bool {
	if l.part == and {
		return u.label.part == 0
	}
	return u.arrow && deeper && !u.gap
}

var beginsAnew = regexp.MustCompile(`^(?:\p{Lu}|[*_]{2}|#|\|)`)

// wraps decides whether a line that is not indented goes on with the one before
// it, as a paragraph does that an editor has wrapped: that one is long and ends
// no sentence.
func (u *unit) wraps(text string) bool {
	if u.width < wide || strings.ContainsAny(u.tail[len(u.tail)-1:], ".:!?") {
		return false
	}
	if u.arrow {
		return !hasArrow(text) && !beginsAnew.MatchString(text)
	}
	return true
}
