// Package ignore decides which names .gitignore files leave out, as git does:
// nearer files outrank farther ones, later lines earlier ones, and nothing
// below an ignored folder comes back. go-git's gitignore compares names with
// patterns; this package takes lines apart, and hands go-git what it reads as
// git does. It opens no file.
package ignore

import (
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
)

// Rules are the ignore rules in force in one folder: its own file's and, less
// urgent, those of the folders above it. The zero pointer has no rules.
type Rules struct {
	base  string // the folder with a trailing slash; "" at the root
	rules []rule
	above *Rules
}

// Exclude makes the least urgent rules of a repository, those of info/exclude.
func Exclude(data []byte) *Rules {
	return (*Rules)(nil).Below("", data)
}

// Below adds the rules of the .gitignore in a folder, whose path ends with a
// slash or is "" for the root.
func (r *Rules) Below(base string, data []byte) *Rules {
	rules := parse(data)
	if len(rules) == 0 {
		return r
	}
	return &Rules{base: base, rules: rules, above: r}
}

// Ignored says whether the rules leave out a path below their folder. The
// caller has asked about each folder on the way first.
func (r *Rules) Ignored(path string, dir bool) bool {
	for ; r != nil; r = r.above {
		parts := strings.Split(bytewise(path[len(r.base):]), "/")
		for _, rule := range slices.Backward(r.rules) {
			if rule.matches(parts, dir) {
				return !rule.negated
			}
		}
	}
	return false
}

// matches goes through both from the left: the last nil takes one part more
// whenever what follows it does not fit.
func (r *rule) matches(path []string, dir bool) bool {
	if r.dirOnly && !dir {
		return false
	}
	if r.baseOnly {
		path = path[len(path)-1:]
	}
	i, at, again, from := 0, 0, -1, 0
	for at < len(path) {
		switch {
		case i < len(r.parts) && r.parts[i] == nil:
			again, from = i+1, at
			i = again
		case i < len(r.parts) && r.parts[i].Match(path[at:at+1], true) != gitignore.NoMatch:
			i, at = i+1, at+1
		case again >= 0:
			from++
			i, at = again, from
		default:
			return false
		}
	}
	return i == len(r.parts)
}
