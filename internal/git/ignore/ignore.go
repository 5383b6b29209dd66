// Package ignore decides which names .gitignore files leave out, as git does:
// nearer files outrank farther ones, later lines earlier ones, and nothing
// below an ignored folder comes back. go-git's gitignore compares names with
// patterns. It opens no file.
package ignore

import (
	"bytes"
	"slices"
	"strings"

	"abl/internal/lazyregexp"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
)

// Rules are the ignore rules in force in one folder: its own file's and, less
// urgent, those of the folders above it. The nil pointer has no rules.
type Rules struct {
	base  string // the folder with a trailing slash; "" at the root
	own   []rule
	above *Rules
}

// rule is one line of an ignore file.
type rule struct {
	gitignore.Pattern // of what may be left out and stands at the top

	negated  bool // the line began with !
	anywhere bool // it had no slash within, or began with **/
	below    bool // it ended with /**
}

// Exclude makes the least urgent rules of a repository, those of info/exclude.
func Exclude(data []byte) *Rules { return (*Rules)(nil).Below("", data) }

// inner are stars beside other characters of a part, which mean one; spelled is what
// go-git has other words for.
var (
	inner   = lazyregexp.New(`([^/*])\*\*+|\*\*+([^/*])`)
	spelled = strings.NewReplacer("[!", "[^", "[:alpha:]", "a-zA-Z", "[:alnum:]", "a-zA-Z0-9", "[:digit:]", "0-9",
		"[:xdigit:]", "0-9a-fA-F", "[:lower:]", "a-z", "[:upper:]", "A-Z", "[:space:]", "\t\r ")
)

// Below adds the rules of the ignore file in a folder, whose path ends with a slash or
// is "" for the root. No input is an error: a line that means nothing matches nothing.
func (r *Rules) Below(base string, data []byte) *Rules {
	now := &Rules{base: base, above: r}
	for line := range bytes.SplitSeq(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), []byte("\n")) {
		text, _, _ := strings.Cut(strings.TrimSuffix(string(line), "\r"), "\x00") // git's lines are C strings
		if !strings.HasSuffix(text, `\ `) {
			text = strings.TrimRight(text, " ")
		}
		if text == "" || text[0] == '#' {
			continue
		}
		var one rule
		text, one.negated = strings.CutPrefix(text, "!")
		text = inner().ReplaceAllString(spelled.Replace(text), "$1*$2")
		if strings.HasPrefix(text, "/**") {
			text = text[1:]
		}
		if one.anywhere = !strings.Contains(strings.TrimSuffix(text, "/"), "/"); one.anywhere {
			text = strings.ReplaceAll(text, "**", "*")
		}
		text, one.below = strings.CutSuffix(text, "/**")
		if rest, any := strings.CutPrefix(text, "**/"); any {
			text, one.anywhere = rest, true
		}
		one.Pattern = gitignore.ParsePattern("/"+strings.TrimPrefix(text, "/"), nil)
		now.own = append(now.own, one)
	}
	return now
}

// Ignored says whether the rules leave out a path below their folder. The
// caller has asked about each folder on the way first.
func (r *Rules) Ignored(path string, dir bool) bool {
	for ; r != nil; r = r.above {
		parts := strings.Split(path[len(r.base):], "/")
		for _, one := range slices.Backward(r.own) {
			if one.matches(parts, dir) {
				return !one.negated
			}
		}
	}
	return false
}

// matches compares a path itself: go-git's patterns match also what is below one.
func (r rule) matches(path []string, dir bool) bool {
	if r.below {
		path, dir = path[:len(path)-1], true
	}
	for ; len(path) > 0; path = path[1:] {
		above := path[:len(path)-1]
		if r.Match(path, dir) != gitignore.NoMatch && (r.below || r.Match(above, true) == gitignore.NoMatch) {
			return true
		}
		if !r.anywhere {
			return false
		}
	}
	return false
}
