package witness

import (
	"encoding/json"
	"regexp"
	"strings"
)

// block is the diagnostics of a test line in the making.
type block struct {
	line   int
	indent int
	lines  []string // without the indentation
}

// inBlock takes a line that belongs to the open block. One that stands less deep
// than the block does not: then the block is broken, and whether the line is
// run.sh's own or a quotation, nobody knows.
func (p *parser) inBlock(s string) bool {
	b := p.block
	blank := strings.TrimSpace(s) == ""
	switch {
	case !blank && indent(s) < b.indent:
		p.problem(p.n, true, "this line breaks the block that begins on line %d: it may be a quotation, which has to be indented or quoted", b.line)
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
	p.Points[p.latest].read(p.block.lines)
	p.block, p.latest = nil, -1
}

var (
	key    = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_ .-]{0,39}?) *:(?: +(.*)|$)`)
	scalar = regexp.MustCompile(`^[|>][-+0-9]{0,2} *$`)
)

// read takes the fields out of a block. It is the YAML that people write into
// such blocks, and what it does not understand it keeps as it stands.
func (p *Point) read(lines []string) {
	for i := 0; i < len(lines) && len(p.Fields) < MaxFields; {
		name, v := "text", lines[i]
		if m := key.FindStringSubmatch(v); m != nil {
			name, v = strings.ToLower(m[1]), strings.TrimRight(m[2], " ")
			if v = unquote(v); scalar.MatchString(m[2]) {
				v = ""
			}
		} else if strings.TrimSpace(v) == "" {
			i++
			continue
		}
		first := i + 1
		for i++; i < len(lines) && !key.MatchString(lines[i]); {
			i++
		}
		p.Fields = append(p.Fields, Field{name, strings.Join(append([]string{v}, dedent(lines[first:i])...), "\n")})
	}
}

// dedent takes off the indentation that all lines share.
func dedent(lines []string) []string {
	least := -1
	for _, l := range lines {
		if strings.TrimSpace(l) != "" && (least < 0 || indent(l) < least) {
			least = indent(l)
		}
	}
	all := make([]string, len(lines))
	for i, l := range lines {
		all[i] = l[min(max(least, 0), len(l)):]
	}
	return all
}

// comment takes a comment below the test line.
func (p *Point) comment(text string) {
	if n := len(p.Fields); n > 0 && p.Fields[n-1].Key == "comment" {
		if f := &p.Fields[n-1]; len(f.Value) <= MaxValue {
			f.Value += "\n" + text
		}
	} else if n < MaxFields {
		p.Fields = append(p.Fields, Field{"comment", text})
	}
}

// unquote takes off the quotation marks around a whole value.
func unquote(v string) string {
	n := len(v)
	switch {
	case n < 2 || v[0] != v[n-1]:
	case v[0] == '\'':
		return strings.ReplaceAll(v[1:n-1], "''", "'")
	case v[0] == '"':
		var s string
		if json.Unmarshal([]byte(v), &s) == nil {
			return s
		}
		return v[1 : n-1]
	}
	return v
}
