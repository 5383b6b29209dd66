// Package ignore decides which names .gitignore files leave out, as git does:
// nearer files outrank farther ones, later lines earlier ones, and nothing
// below an ignored folder comes back. It opens no file.
package ignore

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"abl/internal/lazyregexp"
)

// Rules are the ignore rules in force in one folder: its own file's and, less
// urgent, those of the folders above it. The nil pointer has no rules.
type Rules struct {
	Size int // bytes of all of their files

	base  string // the folder with a trailing slash; "" at the root
	own   []rule
	above *Rules
}

// rule is one line of an ignore file.
type rule struct {
	negated  bool // the line began with !
	dirOnly  bool // the line ended with /
	baseOnly bool // no slash within: compared with the last part of a path
	expr     *regexp.Regexp
}

// Exclude makes the least urgent rules of a repository, those of info/exclude.
func Exclude(data []byte) *Rules { return new(Rules).Below("", data) }

// Below adds the rules of the ignore file in a folder, whose path ends with a slash or
// is "" for the root. No input is an error: a line that means nothing matches nothing.
func (r *Rules) Below(base string, data []byte) *Rules {
	now := &Rules{Size: r.Size + len(data), base: base, above: r}
	for line := range bytes.SplitSeq(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), []byte("\n")) {
		text, _, _ := strings.Cut(strings.TrimSuffix(string(line), "\r"), "\x00") // git's lines are C strings
		if strings.HasPrefix(text, "#") {
			continue
		}
		var one rule
		text, one.negated = strings.CutPrefix(trimSpaces(text), "!")
		text, one.dirOnly = strings.CutSuffix(text, "/")
		one.baseOnly = !strings.Contains(text, "/")
		var err error
		one.expr, err = regexp.Compile("(?s)^" + expression(strings.TrimPrefix(text, "/")) + "$")
		if err == nil && text != "" {
			now.own = append(now.own, one)
		}
	}
	return now
}

// Ignored says whether the rules leave out a path below their folder. The
// caller has asked about each folder on the way first.
func (r *Rules) Ignored(path string, dir bool) bool {
	for ; r != nil; r = r.above {
		if len(r.own) == 0 {
			continue
		}
		below := bytewise(path[len(r.base):])
		base := bytewise(path[strings.LastIndexByte(path, '/')+1:])
		for _, one := range slices.Backward(r.own) {
			name := below
			if one.baseOnly {
				name = base
			}
			if (dir || !one.dirOnly) && one.expr.MatchString(name) {
				return !one.negated
			}
		}
	}
	return false
}

// separator stands for the slash: no byte does, so nothing else matches it.
const separator = "\u2028"

var (
	token = lazyregexp.New(`(?s)\\.|\[[!^]?\]?(?:\[:[^\]]*:\]|\\.|[^\]\\])*\]|\*\*+\x{2028}|\*+|.`)
	item  = lazyregexp.New(`(?s)\[:[^\]]*:\]|\\.|.`)
)

// expression is a pattern as a regular expression for what bytewise makes of a path. It
// is none where the pattern matches nothing.
func expression(pattern string) string {
	var out strings.Builder
	pattern = bytewise(pattern)
	for _, at := range token().FindAllStringIndex(pattern, -1) {
		t := pattern[at[0]:at[1]]
		first := at[0] == 0 || strings.HasSuffix(pattern[:at[0]], separator)
		switch {
		case len(t) > 1 && t[0] == '*' && first && at[1] == len(pattern):
			out.WriteString(".*")
		case t[0] == '*' && strings.HasSuffix(t, separator) && first:
			out.WriteString("(?:.*" + separator + ")?")
		case t[0] == '*':
			out.WriteString("[^" + separator + "]*" + strings.TrimLeft(t, "*"))
		case t == "?":
			out.WriteString("[^" + separator + "]")
		case t[0] == '[' && len(t) > 1:
			out.WriteString(bracket(t[1 : len(t)-1]))
		case t == "[" || t == `\`: // cut off
			return t
		default:
			out.WriteString(regexp.QuoteMeta(strings.TrimPrefix(t, `\`)))
		}
	}
	return out.String()
}

// bracket is a bracket expression of a pattern. Names of classes mean the same to Go.
func bracket(body string) string {
	class := "["
	if strings.IndexAny(body, "!^") == 0 {
		body, class = body[1:], "[^"+separator+"-"+separator
	}
	for _, t := range item().FindAllString(body, -1) {
		switch {
		case t == separator: // a slash in brackets is none
			class += "/"
		case t == "-" || len(t) > 2 && t[0] == '[':
			class += t
		default:
			class += fmt.Sprintf(`\x{%x}`, []rune(strings.TrimPrefix(t, `\`))[0])
		}
	}
	return class + "]"
}

// bytewise makes a character of each byte, since git compares bytes.
func bytewise(s string) string {
	runes := make([]rune, len(s))
	for i := range len(s) {
		if runes[i] = rune(s[i]); s[i] == '/' {
			runes[i] = '\u2028'
		}
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
