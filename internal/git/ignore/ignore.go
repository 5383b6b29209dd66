// Package ignore applies .gitignore rules like git: rules in nearer directories take precedence,
// then later lines, and a path below an ignored directory cannot be included again. It reads no
// files.
package ignore

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Rules are the ignore rules for one directory: those of its own file and, with lower precedence,
// those of its parents. A nil *Rules has no rules.
type Rules struct {
	base  string // the directory with a trailing slash, "" for the root
	file  string // source of own
	own   []rule
	above *Rules
}

// rule is one line of an ignore file.
type rule struct {
	parts   []string // patterns for the elements of a path; ** matches any number of directories
	negated bool     // the line began with !
	folders bool     // the line ended with a slash: it matches only directories
	line    int      // from 1
}

// Exclude returns the rules of info/exclude, which have the lowest precedence.
func Exclude(data []byte) *Rules { return (*Rules)(nil).read("", ".git/info/exclude", data) }

// Below adds the rules of the ignore file in a directory. base is its path with a trailing slash,
// or "" for the root. Invalid lines match nothing.
func (r *Rules) Below(base string, data []byte) *Rules { return r.read(base, base+".gitignore", data) }

func (r *Rules) read(base, file string, data []byte) *Rules {
	now, number := &Rules{base: base, file: file, above: r}, 0
	for line := range bytes.SplitSeq(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), []byte("\n")) {
		number++
		text, _, _ := strings.Cut(strings.TrimSuffix(string(line), "\r"), "\x00") // git's lines are C strings
		kept := strings.TrimRight(text, " ")
		if escapes := len(kept) - len(strings.TrimRight(kept, `\`)); kept != text && escapes%2 == 1 {
			kept += " "
		}
		if kept != "" && kept[0] != '#' {
			one := parse(kept)
			one.line = number
			now.own = append(now.own, one)
		}
	}
	return now
}

var unescape = strings.NewReplacer(`\\`, `\\`, `\/`, "/")

func parse(text string) (r rule) {
	text, r.negated = strings.CutPrefix(text, "!")
	text, r.folders = strings.CutSuffix(text, "/")
	anywhere := !strings.Contains(text, "/")
	text = bracket.ReplaceAllStringFunc(bytewise(strings.TrimPrefix(text, "/")), set)
	r.parts = strings.Split(unescape.Replace(text), "/")
	for i, part := range r.parts {
		if len(part) > 1 && strings.Trim(part, "*") == "" {
			r.parts[i] = "**"
		}
	}
	if anywhere {
		r.parts = slices.Insert(r.parts, 0, "**")
	}
	if r.parts[len(r.parts)-1] == "**" { // the content of a directory, but not the directory
		r.parts = append(r.parts, "*")
	}
	return r
}

// bracket matches a set in a pattern, or an escaped character, which stays. class replaces the
// character classes of a set, which path.Match does not support. item is a character or a range.
var (
	bracket = regexp.MustCompile(`(?s)\\.|\[([!^]?)(\]?(?:\\.|\[:[^\]]*:\]|[^\]\\])*)(\]|$)`)
	class   = strings.NewReplacer("[:alpha:]", "a-zA-Z", "[:alnum:]", "a-zA-Z0-9", "[:digit:]", "0-9", "[:xdigit:]",
		"0-9a-fA-F",
		"[:lower:]", "a-z", "[:upper:]", "A-Z", "[:space:]", "\t\n\r - ", "[:blank:]", "\t - ", "[:cntrl:]",
		"\x01-\x1f\x7f-\x7f",
		"[:punct:]", "!--.:-@\\[-`{-~", "[:graph:]", "!-~", "[:print:]", " -~")
	item = regexp.MustCompile(`(?s)\\?(.)(?:-\\?(.))?`)
)

// set converts a set for path.Match, which does not allow unescaped ] and -: to ranges with escaped
// ends. In a range with the wrong order only the first character counts.
func set(text string) string {
	in := bracket.FindStringSubmatch(text)
	items := class.Replace(in[2])
	switch {
	case text[0] == '\\':
		return text
	case in[3] == "" || strings.Contains(items, ":]"):
		return "[" // git does not accept it either, so nothing matches
	}
	items = item.ReplaceAllStringFunc(items, func(s string) string {
		ends := item.FindStringSubmatch(s)
		return `\` + ends[1] + `-\` + max(ends[1], ends[2])
	})
	// A set never matches a slash.
	items = strings.ReplaceAll(strings.ReplaceAll(items, `\/-`, `\0-`), `-\/`, `-\.`)
	return "[" + strings.Replace(in[1], "!", "^", 1) + items + "]"
}

// bytewise converts each byte to a character, because git compares bytes.
func bytewise(s string) string {
	all := make([]rune, len(s))
	for i := range len(s) {
		all[i] = rune(s[i])
	}
	return string(all)
}

// Ignored reports whether the rules exclude a path below their directory. The caller must check the
// parents first.
func (r *Rules) Ignored(path string, dir bool) bool { return r.By(path, dir) != "" }

// By returns the file and the line of the rule that excludes a path, as in ".gitignore:3", or "" if
// no rule does.
func (r *Rules) By(path string, dir bool) string {
	for ; r != nil; r = r.above {
		names := strings.Split(bytewise(path[len(r.base):]), "/")
		for _, one := range slices.Backward(r.own) {
			if (dir || !one.folders) && matches(one.parts, names) {
				if one.negated {
					return ""
				}
				return fmt.Sprintf("%s:%d", r.file, one.line)
			}
		}
	}
	return ""
}

// matches reports whether parts match names. It backtracks only to the last **, which suffices and
// takes at most the product of both lengths.
func matches(parts, names []string) bool {
	var after, from []string // the parts after the last **, and the names at which they began
	for len(names) > 0 {
		if len(parts) > 0 && parts[0] == "**" {
			parts = parts[1:]
			after, from = parts, names
			continue
		}
		if len(parts) > 0 {
			if same, _ := path.Match(parts[0], names[0]); same {
				parts, names = parts[1:], names[1:]
				continue
			}
		}
		if len(from) == 0 {
			return false
		}
		from = from[1:]
		parts, names = after, from
	}
	return len(parts) == 0
}
