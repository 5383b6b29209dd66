// Package gitname says which file names git refuses to carry, on this or on
// any other system, so that one odd name costs that name and not the commit.
package gitname

import (
	"strings"
	"unicode/utf8"
)

// Refused says why git, or git fsck --strict, refuses a path component; ""
// means that it does not. link tells whether the name is a symbolic link's.
func Refused(name string, link bool) string {
	switch {
	case name == "" || name == "." || name == "..":
		return "not a name"
	case strings.ContainsAny(name, "/\x00"):
		return "a name with a slash or a NUL"
	case harmless(name):
		return ""
	case meansGit(name):
		return "git reads this name as .git"
	case link && meansSpecial(name):
		return "git refuses a link under this name"
	}
	return ""
}

// Modules says whether some system reads the name as .gitmodules, whose
// content git checks.
func Modules(name string) bool {
	return anyPart(name, func(s string) bool { return special[0].matches(s) }) || special[0].hfs(name)
}

// Attributes says whether some system reads the name as .gitattributes.
func Attributes(name string) bool { return special[2].matches(name) || special[2].hfs(name) }

// harmless knows most names at a glance: those git minds begin with a dot, a
// tilde or a letter of git~1 or mailmap, or hide it behind a backslash or beyond ASCII.
func harmless(name string) bool {
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
	for _, s := range special {
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
