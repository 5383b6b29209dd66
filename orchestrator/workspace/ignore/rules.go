package ignore

import "strings"

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
	name := path[strings.LastIndexByte(path, '/')+1:]
	for ; r != nil; r = r.above {
		for i := len(r.rules) - 1; i >= 0; i-- {
			if rule := &r.rules[i]; rule.matches(path[len(r.base):], name, dir) {
				return !rule.negated
			}
		}
	}
	return false
}

func (r *rule) matches(path, name string, dir bool) bool {
	if r.dirOnly && !dir {
		return false
	}
	if r.baseOnly {
		path = name
	}
	switch r.kind {
	case plain:
		return path == r.literal
	case ending:
		return strings.HasSuffix(path, r.suffix)
	}
	rest, ok := strings.CutPrefix(path, r.literal)
	return ok && r.rest.match(rest)
}
