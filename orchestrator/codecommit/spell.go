package codecommit

import (
	"strings"
	"unicode/utf8"

	"abl/internal/redact"
)

// What file systems allow.
const (
	longestName = 255
	longestPath = 4000
)

const tooLong = "it is longer than any path"

// lookalikes are characters that some system or reader takes for a dot or a
// slash.
const lookalikes = "\u2024\u2025\u2026\ufe52\uff0e\uff61" + "\u2044\u2215\u29f8\uff0f" + "\u29f5\ufe68\uff3c"

// spell returns the path in its one spelling, or the rule that it breaks.
func spell(path string) (clean, rule string) {
	for strings.HasPrefix(path, "./") {
		path = strings.TrimPrefix(path, "./")
	}
	switch {
	case path == "" || path == ".":
		return "", "it names no file"
	case len(path) > longestPath:
		return "", tooLong
	case !utf8.ValidString(path):
		return "", "it is not valid UTF-8"
	case path[0] == '/':
		return "", "it is absolute; paths begin in the project's folder"
	case strings.ContainsRune(path, '\\'):
		return "", `it has a backslash; folders are parted by "/"`
	case len(path) > 1 && path[1] == ':' && letter(path[0]):
		return "", "it begins with a drive's letter"
	case strings.HasSuffix(path, "/"):
		return "", "it names a folder, not a file"
	}
	if rule := oddRune(path); rule != "" {
		return "", rule
	}
	for name := range strings.SplitSeq(path, "/") {
		if rule := component(name); rule != "" {
			return "", rule
		}
	}
	return path, ""
}

func letter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }

func oddRune(path string) string {
	for _, r := range path {
		switch {
		case strings.ContainsRune(lookalikes, r):
			return "it has a character that passes for a dot or a slash"
		case !redact.Plain(r):
			return "it has a character that cannot be seen"
		}
	}
	return ""
}

// component judges one name of a path.
func component(name string) string {
	folded := strings.ToLower(name)
	switch {
	case name == "":
		return "it has an empty name between two slashes"
	case name == "..":
		return "it leaves its folder by \"..\""
	case name == ".":
		return "it has a \".\" in the middle"
	case name == "~":
		return "it begins in somebody's home by \"~\""
	case len(name) > longestName:
		return "one of its names is longer than 255 bytes"
	case strings.Contains(folded, "%2e"), strings.Contains(folded, "%2f"), strings.Contains(folded, "%5c"):
		return "it spells a dot or a slash with a percent sign"
	case strings.TrimRight(name, " .") != name, strings.TrimLeft(name, " ") != name:
		return "one of its names begins with a blank, or ends with a blank or a dot"
	case folded == "git~1" || strings.HasPrefix(folded, ".git:"):
		return "it spells .git in another way"
	}
	return ""
}
