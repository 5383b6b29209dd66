package failedspecs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"abl/internal/spec"
)

// fences maps the line that opens a code block to the line that closes it. Chat models put a fence
// around a whole response, or around each entry, regardless of other fences in it.
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

// block reads a code block and returns its last line. It ignores the fences of a block around
// entries, unless the text before announces an example. A block in an entry belongs to the current
// field, and has no labels.
func (p *parser) block(i, end int, first string) int {
	inside := p.lines[i+1 : end]
	switch {
	case p.open == nil && !p.example:
		p.lines[end] = endOfBlock
		return i
	case p.open == nil:
		if at := slices.IndexFunc(inside, func(line string) bool { l, ok := labelOf(line); return ok && !l.bare }); at >= 0 {
			p.problem(i+at+2, "an entry in an example is ignored")
		}
		return end
	}
	p.Fenced = append(p.Fenced, i+1)
	if _, info, _ := spec.Fence(first); program(info, inside) {
		p.problem(i+1, fmt.Sprintf("%s contains a code block, which does not reach the Builder", p.open.last))
		inside = []string{LeftOut("a code block")}
	}
	for _, line := range inside {
		p.open.add(line)
	}
	return end
}

// dataBlocks are the languages of code blocks with sent or received data. Any other language counts
// as a programming language.
const dataBlocks = " text txt plain plaintext json json5 jsonc jsonl http https html xml svg yaml yml csv tsv " +
	"toml ini form output response request headers body "

// program reports whether a code block in an entry is a program, according to its language. A shell
// block that only calls curl is not.
func program(info string, lines []string) bool {
	name, _, _ := strings.Cut(strings.ToLower(info), " ")
	name = strings.Trim(name, "{}.")
	switch name {
	case "":
		return false
	case "sh", "bash", "shell", "zsh", "console", "curl":
		return !curls.MatchString(strings.ReplaceAll(strings.Join(lines, "\n"), "\\\n", " ")) ||
			strings.Contains(strings.Join(lines, ""), "$(")
	}
	return !strings.Contains(dataBlocks, " "+name+" ")
}

// curls matches a text of only curl calls.
var curls = regexp.MustCompile(`^(?:\s*(?:\$ +)?curl(?: [^\n]*)?(?:\n|$))*\s*$`)

// field is one of the three fields of an entry, an index of fieldNames.
type field int

const specField, inputField, observedField field = 0, 1, 2

var fieldNames = [...]string{"SPEC", "INPUT", "OBSERVED"}

func (f field) String() string { return fieldNames[f] }

// label is a line that begins a field.
type label struct {
	field field
	lead  int    // width of the white space before it
	col   int    // column of its first letter or emphasis, after bullets and heading marks
	rest  string // rest of the line
	bare  bool   // the label is the whole line, as a heading or in bold, without a colon
}

// emoji matches consecutive emoji, also keycaps. clean replaces the characters that join them by
// U+FFFD.
const emoji = `(?:(?:[\x{2300}-\x{27BF}\x{2B00}-\x{2BFF}\x{1F000}-\x{1FAFF}]|\d\x{FE0F}?\x{20E3})[\x{FE0F}\x{FFFD}]* ?)+`

var (
	// labelDress matches the text before a label: white space, bullets, numbers,
	// check boxes, heading marks, emoji.
	labelDress = regexp.MustCompile(`^( *)((?:(?:[-–—−•] ?|[*+‣◦▪●·] |\(?\d{1,3}[.)] |#{1,6} |#\d{1,3}[.:)]? |` + emoji +
		`) *(?:\[[ xX]\] +)?)*)`)

	space     = regexp.MustCompile(`[\t\p{Zs}]`)
	upToColon = regexp.MustCompile(`^[^:：﹕]*`)

	// labelName matches the name with its emphasis, its number or the contract's id,
	// and the mark after it.
	labelName = regexp.MustCompile("^([*_`]{0,3})(?:" + emoji + ")?(?i:(spec|input|observed))(?: *(#?\\d{1,3}|[\\[(]?(?i:p)\\d{1,4}\\.(?i:c)\\d{1,6}[\\])]?))?" +
		"([*_`]{0,3}) *(?:([:：﹕])|([-–—=]) )?(.*)$")
)

// labelOf recognizes SPEC, INPUT and OBSERVED in the usual formats of people and models.
func labelOf(line string) (label, bool) {
	// In French there is a non-breaking space before the colon.
	head := upToColon.FindString(line)
	line = space.ReplaceAllString(head, " ") + line[len(head):]
	dress := labelDress.FindStringSubmatch(line)
	m := labelName.FindStringSubmatch(line[len(dress[0]):])
	if m == nil {
		return label{}, false
	}
	open, name, tag, shut, mark, dash, rest := m[1], m[2], m[3], m[4], m[5], m[6], strings.TrimSpace(m[7])
	l := label{lead: len(dress[1]), col: utf8.RuneCountInString(dress[0])}
	l.field = field(slices.IndexFunc(fieldNames[:], func(n string) bool { return strings.EqualFold(n, name) }))
	switch {
	case mark != "":
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
