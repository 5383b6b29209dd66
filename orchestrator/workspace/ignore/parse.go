// Package ignore decides which names .gitignore files leave out, as git does:
// nearer files outrank farther ones, later lines earlier ones, and nothing
// below an ignored folder comes back.
//
// The rules are an agent's, so matching takes time in proportion to pattern
// times path, whatever the pattern is.
package ignore

import (
	"bytes"
	"strings"
)

// rule is one line of an ignore file.
type rule struct {
	negated  bool // the line began with !
	dirOnly  bool // the line ended with /
	baseOnly bool // no slash within: compared with the last part of a path
	literal  string
	suffix   string // for *literal, the commonest kind
	rest     glob   // what follows the literal beginning; nil when nothing does
	kind     kind
}

type kind int

const (
	plain  kind = iota // literal and nothing else
	ending             // * and a literal
	globbed
)

// parse reads the rules of one file, in order. No input is an error: a line
// that means nothing matches nothing.
func parse(data []byte) []rule {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	var rules []rule
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		if r, ok := parseLine(string(line)); ok {
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
	r.baseOnly = !strings.Contains(line, "/")
	r.compile(line)
	return r, true
}

func (r *rule) compile(pattern string) {
	special := strings.IndexAny(pattern, `*?[\`)
	switch {
	case special < 0:
		r.kind, r.literal = plain, strings.TrimPrefix(pattern, "/")
	case r.baseOnly && special == 0 && pattern[0] == '*' && !strings.ContainsAny(pattern[1:], `*?[\`):
		r.kind, r.suffix = ending, pattern[1:]
	default:
		// git compares the literal beginning by itself and hands the remainder
		// to its matcher, for which ** right after it then stands at a beginning.
		r.kind = globbed
		if !r.baseOnly {
			r.literal = strings.TrimPrefix(pattern[:special], "/")
			pattern = pattern[special:]
		}
		r.rest = compileGlob(pattern, !r.baseOnly)
	}
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
