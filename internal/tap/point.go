package tap

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	number    = regexp.MustCompile(`^(\d{1,7})(?: +|$)`)
	dash      = regexp.MustCompile(`^[-–—](?: +|$)`)
	directive = regexp.MustCompile(`^# *(?i:(skip|todo))\w*`)
)

// readPoint reads a test line; ok is false when it is none.
func readPoint(line string) (p Point, ok bool) {
	rest, isOK := strings.CutPrefix(line, "ok")
	if !isOK {
		if rest, ok = strings.CutPrefix(line, "not ok"); !ok {
			return p, false
		}
	}
	if rest != "" && rest[0] != ' ' {
		return p, false
	}
	p.OK, rest = isOK, strings.TrimSpace(rest)
	if m := number.FindStringSubmatch(rest); m != nil {
		p.Number, _ = strconv.Atoi(m[1])
		rest = rest[len(m[0]):]
		if p.Number == 0 {
			p.Number = -1 // no test has it: the plan's check finds it
		}
	}
	p.IDs = heads(p.describe(rest[len(dash.FindString(rest)):]))
	return p, true
}

// describe takes a description apart at its directive, and returns what stands
// before it, without the backslashes before # and \.
func (p *Point) describe(raw string) string {
	var text strings.Builder
	for i := 0; i < len(raw); i++ {
		switch {
		case raw[i] == '\\' && i+1 < len(raw) && (raw[i+1] == '#' || raw[i+1] == '\\'):
			i++
		case raw[i] == '#':
			m := directive.FindStringSubmatch(raw[i:])
			if m != nil && (i == 0 || raw[i-1] == ' ' || m[1] == strings.ToUpper(m[1])) {
				p.Directive = strings.ToUpper(m[1])
				return strings.TrimSpace(text.String())
			}
		}
		text.WriteByte(raw[i])
	}
	return strings.TrimSpace(text.String())
}

var (
	firstID = regexp.MustCompile(`^[\[(]?([Pp][1-9]\d{0,3}\.[Cc][1-9]\d{0,5})(?:\.?(?:[^\w.]|$)|\.\.)`)
	nextID  = regexp.MustCompile(`^(?:[\s,;:/+&|)\](\[–—.-]|(?i:and|to)\b)*((?:[Pp][1-9]\d{0,3}\.)?[Cc][1-9]\d{0,5})(?:[^\w]|$)`)
)

// heads are the ids at the head of a description. A further id right behind the
// first, in whatever form ("P1.C3, C4", "P1.C3-P1.C5"), makes it a line for several
// contracts.
func heads(text string) (ids []string) {
	phase := ""
	for m := firstID.FindStringSubmatchIndex(text); m != nil; m = nextID.FindStringSubmatchIndex(text) {
		id := strings.ToUpper(text[m[2]:m[3]])
		if id[0] == 'C' {
			id = phase + id
		}
		if phase == "" {
			phase = id[:strings.Index(id, ".")+1]
		}
		if !slices.Contains(ids, id) && len(ids) < maxIDs {
			ids = append(ids, id)
		}
		text = text[m[3]:]
	}
	return ids
}
