package tap

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"abl/internal/wording"
)

var (
	number    = regexp.MustCompile(`^(\d{1,7})(?: +|$)`)
	dash      = regexp.MustCompile(`^[-–—](?: +|$)`)
	directive = regexp.MustCompile(`(\\*)# *((?i)skip|todo)\w*`)
)

// readPoint parses a test line. It returns false if line is not one.
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
			p.Number = -1 // invalid: the check of the plan reports it
		}
	}
	p.IDs = heads(p.describe(rest[len(dash.FindString(rest)):]))
	return p, true
}

// describe splits a description at its directive and returns the part before.
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

// heads returns the ids at the beginning of a description. Further ids in any notation ("P1.C3,
// C4", "P1.C3-P1.C5") make it a line for several contracts.
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

// block is the open diagnostics block of a test line.
type block struct {
	line   int
	indent int
	lines  []string // without the indentation
}

func indent(s string) int { return len(s) - len(strings.TrimLeft(s, " ")) }

// inBlock reads a line of the open block. A line with less indentation breaks the block: it may be
// a test line, or output of the app that the test quotes.
func (p *parser) inBlock(s string) bool {
	b := p.block
	blank := strings.TrimSpace(s) == ""
	switch {
	case !blank && indent(s) < b.indent:
		p.problem(p.n, true, "this line breaks the block that begins on line %d: indent or quote the output of the app", b.line)
		p.close()
		return false
	case !blank && indent(s) == b.indent && strings.TrimSpace(s) == "...":
		p.close()
		return true
	}
	b.lines = append(b.lines, s[min(b.indent, len(s)):])
	return true
}

func (p *parser) close() {
	p.latest().read(p.block.lines)
	p.block, p.open = nil, false
}

var (
	key    = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_ .-]{0,39}?) *:(?: +(.*)|$)`)
	scalar = regexp.MustCompile(`^[|>][-+0-9]{0,2} *$`)
)

// read parses the fields of a block, in the subset of YAML that is usual there. It keeps other text
// unchanged.
func (p *Point) read(lines []string) {
	for len(lines) > 0 {
		n := 1
		for n < len(lines) && !key.MatchString(lines[n]) {
			n++
		}
		if m := key.FindStringSubmatch(lines[0]); m != nil {
			v := unquote(strings.TrimRight(scalar.ReplaceAllString(m[2], ""), " "))
			p.set(strings.ToLower(m[1]), strings.Join(append([]string{v}, dedent(lines[1:n])...), "\n"))
		}
		lines = lines[n:]
	}
}

func (p *Point) set(key, text string) {
	if p.Fields == nil {
		p.Fields = map[string]string{}
	}
	if _, has := p.Fields[key]; !has {
		p.Fields[key] = text
	}
}

// dedent removes the indentation of the first non-empty line from all lines.
func dedent(lines []string) (all []string) {
	first := slices.IndexFunc(lines, func(l string) bool { return strings.TrimSpace(l) != "" })
	for _, l := range lines {
		all = append(all, l[min(indent(l), indent(lines[max(first, 0)])):])
	}
	return all
}

// comment adds a comment below the test line.
func (p *Point) comment(text string) {
	if before, has := p.Fields["comment"]; !has {
		p.set("comment", text)
	} else if len(before) <= MaxValue {
		p.Fields["comment"] = before + "\n" + text
	}
}

// unquote removes quotation marks around a value.
func unquote(v string) string {
	n := len(v)
	if n < 2 || v[0] != v[n-1] || v[0] != '\'' && v[0] != '"' {
		return v
	}
	if v[0] == '\'' {
		return strings.ReplaceAll(v[1:n-1], "''", "'")
	}
	var s string
	if json.Unmarshal([]byte(v), &s) != nil {
		return v[1 : n-1]
	}
	return s
}

// readable returns a line as text: without the CR of the line end, cut at MaxLine, with spaces for
// all white space, and U+FFFD for invalid, control and invisible characters.
func readable(line []byte) (s string, long bool) {
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	long = len(line) > MaxLine
	if long {
		line = line[:MaxLine]
	}
	return strings.Map(visible, strings.ToValidUTF8(string(line), "\ufffd")), long
}

func visible(r rune) rune {
	switch {
	case r == '\t' || unicode.Is(unicode.Zs, r):
		return ' '
	case unicode.IsControl(r), unicode.In(r, unicode.Zl, unicode.Zp, unicode.Cf):
		return utf8.RuneError
	}
	return r
}

// value returns the text of a field in normal form. It may have several lines.
func value(s string) string {
	lines := strings.Split(strings.ToValidUTF8(s, "\ufffd"), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(strings.Map(visible, strings.TrimSuffix(l, "\r")), " ")
	}
	return wording.Short(strings.Trim(strings.Join(lines, "\n"), "\n "), MaxValue)
}
