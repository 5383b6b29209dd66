package failedspecs

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"abl/internal/lazyregexp"
	"abl/internal/spec"
)

// fences pairs the fences: the line that closes a block, by the one that opens it. Chat models
// wrap an answer as a whole, or each entry, and do not care for the fences inside.
func fences(lines []string) map[int]int {
	closes := map[int]int{}
	var open []int
	var marks []string
	for i, line := range lines {
		mark, info, is := spec.Fence(line)
		if l, ok := labelOf(line); ok && !is {
			mark, info, is = spec.Fence(l.rest)
		}
		switch n := len(open); {
		case !is:
		case n > 0 && info == "" && strings.HasPrefix(mark, marks[n-1]):
			closes[open[n-1]] = i
			open, marks = open[:n-1], marks[:n-1]
		default:
			open, marks = append(open, i), append(marks, mark)
		}
	}
	return closes
}

// block takes a code block. One outside the entries is taken away, unless words
// before it call it an example; one in an entry belongs to the field before it, and
// nothing in it is a label. It returns the last line taken.
func (p *parser) block(i, end int, first string) int {
	inside := p.lines[i+1 : end]
	switch {
	case p.open == nil && !p.example:
		p.lines[end] = endOfBlock
		return i
	case p.open == nil:
		if at := slices.IndexFunc(inside, func(line string) bool { l, ok := labelOf(line); return ok && !l.bare }); at >= 0 {
			p.problem(i+at+2, "an entry in an example is not read")
		}
		return end
	}
	p.Fenced = append(p.Fenced, i+1)
	if _, info, _ := spec.Fence(first); program(info, inside) {
		p.problem(i+1, fmt.Sprintf("%s holds a code block, which does not reach the Builder", p.open.last))
		inside = []string{LeftOut("a code block")}
	}
	for _, line := range inside {
		p.open.add(line)
	}
	return end
}

// dataBlocks are the names of code blocks that hold what was sent or what came
// back. Any other name is taken for a programming language.
const dataBlocks = " text txt plain plaintext json json5 jsonc jsonl http https html xml svg yaml yml csv tsv toml ini form output response request headers body "

// program decides whether a code block in an entry holds a program: by the name
// of its language, unless it is a command that does nothing but send a request.
func program(info string, lines []string) bool {
	name, _, _ := strings.Cut(strings.ToLower(info), " ")
	switch name = strings.Trim(name, "{}."); name {
	case "":
		return false
	case "sh", "bash", "shell", "zsh", "console", "curl":
		return !curls().MatchString(strings.ReplaceAll(strings.Join(lines, "\n"), "\\\n", " ")) || strings.Contains(strings.Join(lines, ""), "$(")
	}
	return !strings.Contains(dataBlocks, " "+name+" ")
}

// curls is a text of nothing but calls of curl.
var curls = lazyregexp.New(`^(?:\s*(?:\$ +)?curl(?: [^\n]*)?(?:\n|$))*\s*$`)

// field is one of the three parts of an entry, by its place in fieldNames.
type field int

const specField, inputField, observedField field = 0, 1, 2

var fieldNames = [...]string{"SPEC", "INPUT", "OBSERVED"}

func (f field) String() string { return fieldNames[f] }

// label is a line that opens a field.
type label struct {
	field field
	lead  int    // columns of white space before it
	col   int    // column of its first letter or emphasis, after bullets and heading marks
	rest  string // what follows on the line
	bare  bool   // it stands alone, as a heading or in bold, without a colon
}

// emoji are pictures in a row, a number in a key among them. What joined them
// has become U+FFFD.
const emoji = `(?:(?:[\x{2300}-\x{27BF}\x{2B00}-\x{2BFF}\x{1F000}-\x{1FAFF}]|\d\x{FE0F}?\x{20E3})[\x{FE0F}\x{FFFD}]* ?)+`

var (
	// labelDress is what may stand before a name: white space, bullets, numbers,
	// check boxes, heading marks, emoji.
	labelDress = lazyregexp.New(`^( *)((?:(?:[-–—−•] ?|[*+‣◦▪●·] |\(?\d{1,3}[.)] |#{1,6} |#\d{1,3}[.:)]? |` + emoji + `) *(?:\[[ xX]\] +)?)*)`)

	space     = lazyregexp.New(`[\t\p{Zs}]`)
	upToColon = lazyregexp.New(`^[^:：﹕]*`)

	// labelName is the name with its emphasis, its number or the contract's id,
	// and the mark that ends it.
	labelName = lazyregexp.New("^([*_`]{0,3})(?:" + emoji + ")?(?i:(spec|input|observed))(?: *(#?\\d{1,3}|[\\[(]?(?i:p)\\d{1,4}\\.(?i:c)\\d{1,6}[\\])]?))?" +
		"([*_`]{0,3}) *(?:([:：﹕])|([-–—=]) )?(.*)$")
)

// labelOf recognises SPEC, INPUT and OBSERVED in the dress that people and
// models give them.
func labelOf(line string) (label, bool) {
	// French puts a space before the colon that does not break.
	head := upToColon().FindString(line)
	line = space().ReplaceAllString(head, " ") + line[len(head):]
	dress := labelDress().FindStringSubmatch(line)
	m := labelName().FindStringSubmatch(line[len(dress[0]):])
	if m == nil {
		return label{}, false
	}
	open, name, tag, shut, colon, dash, rest := m[1], m[2], m[3], m[4], m[5], m[6], strings.TrimSpace(m[7])
	l := label{lead: len(dress[1]), col: utf8.RuneCountInString(dress[0])}
	l.field = field(slices.IndexFunc(fieldNames[:], func(n string) bool { return strings.EqualFold(n, name) }))
	switch {
	case colon != "":
	case dash != "" && name == strings.ToUpper(name): // "Input - see above" is prose
	case dash == "" && rest == "" && tag == "" && (strings.Contains(dress[2], "#") || open != "" && shut != ""):
		l.bare = true
	default:
		return label{}, false
	}
	switch {
	case open != "" && shut == "" && strings.HasPrefix(rest, open):
		rest = rest[len(open):]
	case open != "" && shut == "":
		rest = strings.TrimSuffix(rest, open)
	}
	if l.field == specField && strings.Contains(tag, ".") {
		rest = strings.Trim(tag, "[]()") + " " + strings.TrimSpace(rest)
	}
	l.rest = strings.TrimSpace(rest)
	return l, true
}
