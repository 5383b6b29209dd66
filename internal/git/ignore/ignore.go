// Package ignore decides which names .gitignore files leave out, as git does:
// nearer files outrank farther ones, later lines earlier ones, and nothing
// below an ignored folder comes back. It opens no file.
package ignore

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"abl/internal/lazyregexp"
)

// Rules are the ignore rules in force in one folder: its own file's and, less
// urgent, those of the folders above it. The nil pointer has no rules.
type Rules struct {
	base  string // the folder with a trailing slash; "" at the root
	file  string // from which own was read
	own   []rule
	above *Rules
}

// rule is one line of an ignore file.
type rule struct {
	parts   []string // patterns for the names of a path; ** stands for any number of folders
	negated bool     // the line began with !
	folders bool     // it ended with a slash: only folders are meant
	line    int      // from 1
}

// Exclude makes the least urgent rules of a repository, those of info/exclude.
func Exclude(data []byte) *Rules { return (*Rules)(nil).read("", ".git/info/exclude", data) }

// Below adds the rules of the ignore file in a folder, whose path ends with a slash or
// is "" for the root. No input is an error: a line that means nothing matches nothing.
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
	text = bracket().ReplaceAllStringFunc(bytewise(strings.TrimPrefix(text, "/")), set)
	r.parts = strings.Split(unescape.Replace(text), "/")
	for i, part := range r.parts {
		if len(part) > 1 && strings.Trim(part, "*") == "" {
			r.parts[i] = "**"
		}
	}
	if anywhere {
		r.parts = slices.Insert(r.parts, 0, "**")
	}
	if r.parts[len(r.parts)-1] == "**" { // what is in a folder, and not the folder
		r.parts = append(r.parts, "*")
	}
	return r
}

// bracket finds the sets of a pattern, and passes over what is escaped. In a set, class
// is what path.Match has no word for, and item is a character or a range.
var (
	bracket = lazyregexp.New(`(?s)\\.|\[([!^]?)(\]?(?:\\.|\[:[^\]]*:\]|[^\]\\])*)(\]|$)`)
	class   = strings.NewReplacer("[:alpha:]", "a-zA-Z", "[:alnum:]", "a-zA-Z0-9", "[:digit:]", "0-9", "[:xdigit:]", "0-9a-fA-F",
		"[:lower:]", "a-z", "[:upper:]", "A-Z", "[:space:]", "\t\n\r - ", "[:blank:]", "\t - ", "[:cntrl:]", "\x01-\x1f\x7f-\x7f",
		"[:punct:]", "!--.:-@\\[-`{-~", "[:graph:]", "!-~", "[:print:]", " -~")
	item = lazyregexp.New(`(?s)\\?(.)(?:-\\?(.))?`)
)

// set spells a set for path.Match, which takes no ] and no - as they are: as ranges, with
// all of their ends escaped. One that ends before it begins has its first character in it.
func set(text string) string {
	in := bracket().FindStringSubmatch(text)
	items := class.Replace(in[2])
	switch {
	case text[0] == '\\':
		return text
	case in[3] == "" || strings.Contains(items, ":]"):
		return "[" // git takes it for no set either, and nothing matches
	}
	items = item().ReplaceAllStringFunc(items, func(s string) string {
		ends := item().FindStringSubmatch(s)
		return `\` + ends[1] + `-\` + max(ends[1], ends[2])
	})
	// A slash is in no set, since it parts the names of a path.
	items = strings.ReplaceAll(strings.ReplaceAll(items, `\/-`, `\0-`), `-\/`, `-\.`)
	return "[" + strings.Replace(in[1], "!", "^", 1) + items + "]"
}

// bytewise makes a character of each byte, since git compares bytes.
func bytewise(s string) string {
	all := make([]rune, len(s))
	for i := range len(s) {
		all[i] = rune(s[i])
	}
	return string(all)
}

// Ignored says whether the rules leave out a path below their folder. The
// caller has asked about each folder on the way first.
func (r *Rules) Ignored(path string, dir bool) bool { return r.By(path, dir) != "" }

// By returns the file and line of the rule that leaves out a path, as in ".gitignore:3". It
// returns "" if no rule does.
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

// matches goes back to the last ** alone, which is enough and takes no longer than the
// product of both lengths.
func matches(parts, names []string) bool {
	var after, from []string // the parts behind the last **, and the names that they began at
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
