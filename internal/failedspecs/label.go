package failedspecs

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"abl/internal/lazyregexp"
)

// field is one of the three parts of an entry.
type field int

const (
	specField field = iota
	inputField
	observedField
)

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

	// labelName is the name with its emphasis, its number or the contract's id,
	// and the mark that ends it.
	labelName = lazyregexp.New("^([*_`]{0,3})(?:" + emoji + ")?(?i:(spec|input|observed))(?: *(#?\\d{1,3}|[\\[(]?(?i:p)\\d{1,4}\\.(?i:c)\\d{1,6}[\\])]?))?" +
		"([*_`]{0,3}) *(?:([:：﹕])|([-–—=]) )?(.*)$")
)

// labelOf recognises SPEC, INPUT and OBSERVED in the dress that people and
// models give them.
func labelOf(line string) (label, bool) {
	line = plainHead(line)
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

// plainHead writes every kind of space up to the first colon as the plain one:
// French puts one before it that does not break.
func plainHead(line string) string {
	end := strings.IndexAny(line, ":：﹕")
	if end < 0 {
		end = len(line)
	}
	return strings.Map(func(r rune) rune {
		if r == '\t' || unicode.Is(unicode.Zs, r) {
			return ' '
		}
		return r
	}, line[:end]) + line[end:]
}
