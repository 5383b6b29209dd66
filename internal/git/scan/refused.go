package scan

import (
	"bytes"
	"regexp"
	"strings"
	"unicode/utf8"
)

// refusedName says why git, or git fsck --strict, refuses a path component; ""
// means that it does not. link tells whether the name is a symbolic link's.
func refusedName(name string, link bool) string {
	switch {
	case name == "" || name == "." || name == "..":
		return "not a name"
	case strings.ContainsAny(name, "/\x00"):
		return "a name with a slash or a NUL"
	case ordinary(name):
		return ""
	case meansGit(name):
		return "git reads this name as .git"
	case link && meansSpecial(name):
		return "git refuses a link under this name"
	}
	return ""
}

// isModules says whether some system reads the name as .gitmodules, whose
// content git checks.
func isModules(name string) bool {
	return anyPart(name, func(s string) bool { return dotfiles[0].matches(s) }) || dotfiles[0].hfs(name)
}

// isAttributes says whether some system reads the name as .gitattributes.
func isAttributes(name string) bool { return dotfiles[2].matches(name) || dotfiles[2].hfs(name) }

// ordinary knows most names at a glance: those git minds begin with a dot, a
// tilde or a letter of git~1 or mailmap, or hide it behind a backslash or beyond ASCII.
func ordinary(name string) bool {
	switch name[0] {
	case '.', '~', 'g', 'G', 'm', 'M':
		return false
	}
	for i := range len(name) {
		if name[i] == '\\' || name[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func meansGit(name string) bool {
	return anyPart(name, ntfsGit) || hfsEqual(name, ".git")
}

func meansSpecial(name string) bool {
	for _, s := range dotfiles {
		if anyPart(name, s.matches) || s.hfs(name) {
			return true
		}
	}
	return false
}

// anyPart asks about the name and about each part that follows a backslash,
// which Windows reads as a separator.
func anyPart(name string, is func(string) bool) bool {
	for {
		if is(name) {
			return true
		}
		_, rest, found := strings.Cut(name, `\`)
		if !found {
			return false
		}
		name = rest
	}
}

// ntfsGit knows .git and its short name git~1, which NTFS also reaches with
// trailing dots and spaces, with a stream (:) and in any case.
func ntfsGit(name string) bool {
	for _, stem := range [...]string{".git", "git~1"} {
		if hasFold(name, stem) && trailsOff(name[len(stem):], `:\`) {
			return true
		}
	}
	return false
}

// trailsOff says whether only dots and spaces stand before the end or a stop.
func trailsOff(rest, stops string) bool {
	rest = strings.TrimLeft(rest, ". ")
	return rest == "" || strings.IndexByte(stops, rest[0]) >= 0
}

func hasFold(name, stem string) bool {
	return len(name) >= len(stem) && strings.EqualFold(name[:len(stem)], stem)
}

// hfsEqual compares as HFS+ does: some code points do not count, nor does
// case. Broken UTF-8 ends a name there, so it ends it here.
func hfsEqual(name, want string) bool {
	var plain strings.Builder
	for _, r := range name {
		if r == utf8.RuneError {
			break
		}
		if !hfsIgnores(r) {
			plain.WriteRune(r)
		}
	}
	return asciiFold(plain.String()) == want
}

func hfsIgnores(r rune) bool {
	return r >= 0x200c && r <= 0x200f || r >= 0x202a && r <= 0x202e ||
		r >= 0x206a && r <= 0x206f || r == 0xfeff
}

// asciiFold lowers A to Z alone: HFS+ folds more, git does not.
func asciiFold(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

// dotfile is a file that git reads out of a tree. NTFS gives long names a
// short one: six letters and ~1 to ~4, then a hash of the name.
type dotfile struct{ name, hashed string }

var dotfiles = [...]dotfile{
	{"gitmodules", "gi7eba"},
	{"gitignore", "gi250a"},
	{"gitattributes", "gi7d29"},
	{"mailmap", "maba30"},
}

func (d dotfile) hfs(name string) bool { return hfsEqual(name, "."+d.name) }

func (d dotfile) matches(name string) bool {
	if hasFold(name, "."+d.name) && trailsOff(name[len(d.name)+1:], ":") {
		return true
	}
	if hasFold(name, d.name[:6]+"~") && len(name) >= 8 && name[7] >= '1' && name[7] <= '4' {
		return trailsOff(name[8:], ":")
	}
	return d.short(name)
}

// short knows the names NTFS makes when ~1 to ~4 are taken: eight characters,
// a stem of the hashed form cut by ~ and a number.
func (d dotfile) short(name string) bool {
	if len(name) < 8 {
		return false
	}
	stem, number, found := strings.Cut(name[:8], "~")
	if !found || len(stem) > 6 || number == "" || number[0] < '1' {
		return false
	}
	return strings.EqualFold(stem, d.hashed[:len(stem)]) && digits(number) && trailsOff(name[8:], ":")
}

func digits(s string) bool { return strings.Trim(s, "0123456789") == "" }

// readByGit says whether git fsck looks into files of this name.
func readByGit(name string) bool { return isModules(name) || isAttributes(name) }

// refusedContent says why git fsck --strict would complain of a file's
// content; "" when it would not, or does not look.
func refusedContent(name string, data []byte) string {
	switch {
	case isAttributes(name) && longestLine(data) >= maxAttributeLine:
		return "git refuses attributes with so long a line"
	case isModules(name) && !plainModules(data):
		return "a .gitmodules that git may refuse: submodules are not supported"
	}
	return ""
}

// maxAttributeLine is fsck's limit for one line of .gitattributes.
const maxAttributeLine = 2048

func longestLine(data []byte) (longest int) {
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		longest = max(longest, len(line))
	}
	return longest
}

// modulesLine is the part of .gitmodules that fsck accepts in every version:
// sections with a tame name and keys with tame values.
var modulesLine = regexp.MustCompile(`^\s*(?:[#;].*|\[submodule "[A-Za-z0-9_][A-Za-z0-9_/-]*"\]|(?:path|url|branch) = [A-Za-z0-9_][A-Za-z0-9_/.@:~-]*)?\s*$`)

func plainModules(data []byte) bool {
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		if !modulesLine.Match(line) || bytes.Contains(line, []byte("..")) {
			return false
		}
	}
	return true
}
