package scan

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// NTFS reaches a name also with dots and spaces behind it and with a stream (:),
// and by a short name: six letters and a number, or when those are taken some of
// what the name hashes to. Windows reads a backslash as a slash. These find all
// such names, and a few more.
var (
	gitItself = variants(`\.git|git~1`, `:\\`)
	modules   = dotfile("gitmodules", "gi7eba")
	dotfiles  = []*regexp.Regexp{modules, dotfile("gitattributes", "gi7d29"), dotfile("gitignore", "gi250a"), dotfile("mailmap", "maba30")}
)

func dotfile(name, hash string) *regexp.Regexp {
	return variants(`\.`+name+`|`+name[:6]+`~[1-4]|(?:`+hash[:1]+`[`+hash[1:]+`]{0,5})?~[1-9][0-9]*`, ":")
}

func variants(name, stops string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)(?:^|\\)(?:` + name + `)[. ]*(?:$|[` + stops + `])`)
}

// refusedName says why git, or git fsck --strict, refuses a path component; ""
// means that it does not. link tells whether the name is a symbolic link's.
func refusedName(name string, link bool) string {
	switch {
	case ordinary(name):
		return ""
	case reads(name, gitItself):
		return "git reads this name as .git"
	case link && slices.ContainsFunc(dotfiles, func(as *regexp.Regexp) bool { return reads(name, as) }):
		return "git refuses a link under this name"
	}
	return ""
}

// ordinary knows most names at a glance: those git minds begin with a dot, a
// tilde or a letter of git~1 or mailmap, or hide it behind a backslash or beyond ASCII.
func ordinary(name string) bool {
	for i := range len(name) {
		if name[i] == '\\' || name[i] >= utf8.RuneSelf {
			return false
		}
	}
	return strings.IndexByte(".~gGmM", name[0]) < 0
}

// reads says whether some system takes a name for one of these. HFS+ does not
// count some characters, and ends a name at broken UTF-8.
func reads(name string, as *regexp.Regexp) bool {
	whole, _, _ := strings.Cut(strings.ToValidUTF8(name, "\x00"), "\x00")
	plain := strings.Map(func(r rune) rune {
		if r >= 0x200c && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x206a && r <= 0x206f || r == 0xfeff {
			return -1
		}
		return r
	}, whole)
	return as.MatchString(name) || as.MatchString(plain)
}

// isModules says whether git reads a file as one that tells of submodules.
func isModules(name string) bool { return !ordinary(name) && reads(name, modules) }
