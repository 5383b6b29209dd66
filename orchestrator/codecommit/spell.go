package codecommit

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"abl/internal/redact"
)

// What file systems allow, in bytes.
const (
	longestName = 255
	longestPath = 4000
)

const tooLong = "it is longer than any path"

// spellings are those that no path may have. Some characters pass for a dot or a slash
// with some system or reader.
var spellings = []struct {
	broken *regexp.Regexp
	rule   string
}{
	{regexp.MustCompile(`^\.?$`), "it names no file"},
	{regexp.MustCompile(`^/`), "it is absolute; paths begin in the project's folder"},
	{regexp.MustCompile(`\\`), `it has a backslash; folders are parted by "/"`},
	{regexp.MustCompile(`^[A-Za-z]:`), "it begins with a drive's letter"},
	{regexp.MustCompile(`/$`), "it names a folder, not a file"},
	{regexp.MustCompile("[\u2024\u2025\u2026\ufe52\uff0e\uff61\u2044\u2215\u29f8\uff0f\u29f5\ufe68\uff3c]"), "it has a character that passes for a dot or a slash"},
	{regexp.MustCompile(`//`), "it has an empty name between two slashes"},
	{regexp.MustCompile(`(^|/)\.(/|$)`), `it has a "." in the middle`},
	{regexp.MustCompile(`(^|/)\.\.(/|$)`), `it leaves its folder by ".."`},
	{regexp.MustCompile(`(^|/)~(/|$)`), `it begins in somebody's home by "~"`},
	{regexp.MustCompile(`(?i)%2e|%2f|%5c`), "it spells a dot or a slash with a percent sign"},
	{regexp.MustCompile(`(^|/) |[ .](/|$)`), "one of its names begins with a blank, or ends with a blank or a dot"},
	{regexp.MustCompile(`(?i)(^|/)(git~1(/|$)|\.git:)`), "it spells .git in another way"},
}

// spell returns the path in its one spelling, or the rule that it breaks.
func spell(path string) (clean, rule string) {
	for strings.HasPrefix(path, "./") {
		path = strings.TrimPrefix(path, "./")
	}
	switch {
	case len(path) > longestPath:
		return "", tooLong
	case !utf8.ValidString(path):
		return "", "it is not valid UTF-8"
	case strings.ContainsFunc(path, func(r rune) bool { return !redact.Plain(r) }):
		return "", "it has a character that cannot be seen"
	}
	for _, s := range spellings {
		if s.broken.MatchString(path) {
			return "", s.rule
		}
	}
	for name := range strings.SplitSeq(path, "/") {
		if len(name) > longestName {
			return "", "one of its names is longer than 255 bytes"
		}
	}
	return path, ""
}
