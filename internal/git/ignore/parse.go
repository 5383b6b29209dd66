package ignore

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
)

// rule is one line of an ignore file.
type rule struct {
	negated  bool // the line began with !
	dirOnly  bool // the line ended with /
	baseOnly bool // no slash within: compared with the last part of a path

	// What stands between "**" and "**". go-git finds the first place alone where
	// such a part fits, so that each is a pattern of its own here.
	groups         []group
	fromAny, toAny bool // the line begins, ends with "**"
}

// group is a pattern for some parts of a path.
type group struct {
	gitignore.Pattern
	parts int
}

// parse reads the rules of one file, in order. No input is an error: a line
// that means nothing matches nothing.
func parse(data []byte) []rule {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	var rules []rule
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		if r, ok := parseLine(bytewise(string(line))); ok {
			rules = append(rules, r)
		}
	}
	return rules
}

func parseLine(line string) (rule, bool) {
	line = strings.TrimSuffix(line, "\r")
	line, _, _ = strings.Cut(line, "\x00") // git's lines are C strings
	if line == "" || line[0] == '#' {
		return rule{}, false
	}
	var r rule
	line = trimSpaces(line)
	line, r.negated = strings.CutPrefix(line, "!")
	line, r.dirOnly = strings.CutSuffix(line, "/")
	if line == "" {
		return rule{}, false
	}
	parts := strings.Split(strings.TrimPrefix(line, "/"), "/")
	if slices.Contains(parts, "") {
		return rule{}, false // no path has two slashes in a row
	}
	if r.baseOnly = !strings.Contains(line, "/"); r.baseOnly {
		r.groups = []group{newGroup(parts)}
		return r, true
	}
	r.fromAny, r.toAny = stars(parts[0]), stars(parts[len(parts)-1])
	for len(parts) > 0 {
		n := slices.IndexFunc(parts, stars)
		if n < 0 {
			n = len(parts)
		}
		if n > 0 {
			r.groups = append(r.groups, newGroup(parts[:n]))
		}
		parts = parts[min(n+1, len(parts)):]
	}
	return r, true
}

// stars says whether a part of a pattern stands for any folders.
func stars(part string) bool { return len(part) > 1 && strings.Trim(part, "*") == "" }

// newGroup hands go-git a pattern that it reads as git does. A slash before it
// keeps it from taking a ! for more than that.
func newGroup(parts []string) group {
	var text strings.Builder
	for _, part := range parts {
		for strings.Contains(part, "**") {
			part = strings.ReplaceAll(part, "**", "*") // go-git matches nothing with these
		}
		text.WriteString("/" + classes(part))
	}
	pattern := text.String()
	if kept, space := strings.CutSuffix(pattern, " "); space && !strings.HasSuffix(kept, `\`) {
		pattern = kept + `\ ` // go-git would cut it off
	}
	return group{gitignore.ParsePattern(pattern, nil), len(parts)}
}

// named are the classes of bytes that git knows and go-git does not.
var named = strings.NewReplacer("[:alpha:]", "a-zA-Z", "[:alnum:]", "a-zA-Z0-9", "[:digit:]", "0-9", "[:xdigit:]", "0-9a-fA-F",
	"[:lower:]", "a-z", "[:upper:]", "A-Z", "[:space:]", " \t-\r", "[:blank:]", " \t", "[:punct:]", "!-/:-@[-`{-~")

// bracket finds what a backslash keeps as it is, and bracket expressions.
var bracket = regexp.MustCompile(`(?s)\\.|\[([!^]?)(\]?)((?:\[:\w+:\]|\\.|[^\]\\])*)\]`)

// classes rewrites the bracket expressions of a pattern: [!a] is [^a] for go-git,
// and a ] that stands first, or a - that makes no range, has to be escaped.
func classes(part string) string {
	return bracket.ReplaceAllStringFunc(part, func(s string) string {
		m := bracket.FindStringSubmatch(s)
		if s[0] == '\\' {
			return s
		}
		body := named.Replace(m[3])
		if m[2] != "" {
			body = `\]` + body
		}
		if strings.HasPrefix(body, "-") {
			body = `\` + body
		}
		if rest, dash := strings.CutSuffix(body, "-"); dash && !strings.HasSuffix(rest, `\`) {
			body = rest + `\-`
		}
		if m[1] != "" {
			body = "^" + body
		}
		return "[" + body + "]"
	})
}

// bytewise makes a character of each byte, since git compares bytes and go-git
// characters.
func bytewise(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 }) {
		return s
	}
	runes := make([]rune, len(s))
	for i := range len(s) {
		runes[i] = rune(s[i])
	}
	return string(runes)
}

// trimSpaces cuts trailing spaces, but not one that a backslash keeps.
func trimSpaces(s string) string {
	end := len(s)
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case ' ':
			end = min(end, i)
		case '\\':
			i++
			if i == len(s) {
				return s
			}
			end = len(s)
		default:
			end = len(s)
		}
	}
	return s[:end]
}
