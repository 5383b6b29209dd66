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
	directive = regexp.MustCompile(`(\\*)# *((?i)skip|todo)\w*`)
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

// describe takes a description apart at its directive, and returns what stands before it.
func (p *Point) describe(raw string) string {
	for _, m := range directive.FindAllStringSubmatchIndex(raw, -1) {
		hash, word := m[3], raw[m[4]:m[5]]
		escaped := (hash-m[2])%2 > 0
		if !escaped && (hash == 0 || raw[hash-1] == ' ' || word == strings.ToUpper(word)) {
			p.Directive, raw = strings.ToUpper(word), raw[:hash]
			break
		}
	}
	return strings.TrimSpace(raw)
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
