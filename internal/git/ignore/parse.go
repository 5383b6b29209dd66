package ignore

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
)

// rule is one line of an ignore file.
type rule struct {
	negated  bool // the line began with !
	dirOnly  bool // the line ended with /
	baseOnly bool // no slash within: compared with the last part of a path

	parts []gitignore.Pattern // one for each part of a path, nil for any number of parts
}

// glued are stars behind a name and before a slash. By git's manual they are one star,
// but some versions of it let them cross folders, or stand for none.
var glued = regexp.MustCompile(`(?s)^(.*?[^/*])\*\*/`)

// parse reads the rules of one file, in order. No input is an error: a line
// that means nothing matches nothing.
func parse(data []byte) (rules []rule) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		text, _, _ := strings.Cut(strings.TrimSuffix(bytewise(string(line)), "\r"), "\x00") // git's lines are C strings
		if strings.HasPrefix(text, "#") {
			continue
		}
		var r rule
		text, r.negated = strings.CutPrefix(trimSpaces(text), "!")
		text, r.dirOnly = strings.CutSuffix(text, "/")
		r.baseOnly = !strings.Contains(text, "/")
		text = token.ReplaceAllStringFunc(strings.TrimPrefix(text, "/"), spell)
		all := []string{text}
		if !r.negated && glued.MatchString(text) { // what any git would leave out may be a secret
			all = append(all, glued.ReplaceAllString(text, "$1*/**/"), glued.ReplaceAllString(text, "$1"))
		}
		for _, text := range all {
			rules = append(rules, r.of(strings.Split(text, "/")))
		}
	}
	return rules
}

// of is the rule with these parts. "**" at the end stands for at least one.
func (r rule) of(parts []string) rule {
	for i, part := range parts {
		if part == "**" && !r.baseOnly {
			r.parts = append(r.parts, nil)
			if i < len(parts)-1 {
				continue
			}
		}
		r.parts = append(r.parts, gitignore.ParsePattern(part, nil))
	}
	return r
}

// token is what has a meaning of its own in a pattern; item, in a bracket expression.
var (
	token = regexp.MustCompile(`(?s)\\.|\[[!^]?\]?(?:\[:[^\]]*:\]|\\.|[^\]\\])*\]|\*+|.`)
	item  = regexp.MustCompile(`(?s)\[:([^\]]*):\]|(\\.|.)(?:-(\\.|.))?`)
)

// spell writes a token so that go-git reads it as git does: what stands for itself
// behind a backslash.
func spell(token string) string {
	switch token {
	case "/", "?", "*", "[", `\`: // the last two match nothing, being cut off
		return token
	case `\/`:
		return "/"
	case `\*`:
		return "[*]"
	}
	switch token[0] {
	case '*':
		return "**"
	case '[':
		return bracket(token)
	case '\\':
		return token
	}
	return `\` + token
}

// named are the ranges of the classes that have names.
var named = map[string]string{
	"alpha": "azAZ", "alnum": "azAZ09", "digit": "09", "xdigit": "09afAF", "lower": "az", "upper": "AZ", "space": "\t\r  ",
	"blank": "\t\t  ", "punct": "!/:@[`{~", "cntrl": "\x00\x1f\x7f\x7f", "graph": "!~", "print": " ~",
}

// bracket spells a bracket expression as ranges, none of which holds a slash.
func bracket(token string) string {
	body, class := token[1:len(token)-1], "["
	if strings.IndexAny(body, "!^") == 0 {
		body, class = body[1:], "[^"
	}
	for _, m := range item.FindAllStringSubmatch(body, -1) {
		ranges := []rune(named[m[1]])
		if m[2] != "" {
			from, _ := utf8.DecodeLastRuneInString(m[2])
			to, _ := utf8.DecodeLastRuneInString(m[2] + m[3])
			ranges = []rune{from, from, from, to} // what a range begins with counts also in one that runs backwards
		}
		if len(ranges) == 0 {
			return "[" // a class that git does not know matches nothing
		}
		for ; len(ranges) > 0; ranges = ranges[2:] {
			from, to := ranges[0], ranges[1]
			if from == '/' {
				from++
			}
			if to == '/' {
				to--
			}
			class += fmt.Sprintf(`\%c-\%c`, from, to)
		}
	}
	return class + "]"
}

// bytewise makes a character of each byte, since git compares bytes and go-git
// characters.
func bytewise(s string) string {
	runes := make([]rune, len(s))
	for i := range len(s) {
		runes[i] = rune(s[i])
	}
	return string(runes)
}

// trimSpaces cuts trailing spaces, but not one that a backslash keeps.
func trimSpaces(s string) string {
	cut := strings.TrimRight(s, " ")
	if kept := strings.TrimRight(cut, `\`); (len(cut)-len(kept))%2 == 1 && len(cut) < len(s) {
		return cut + " "
	}
	return cut
}
