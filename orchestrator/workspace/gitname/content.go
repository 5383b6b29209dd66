package gitname

import (
	"bytes"
	"regexp"
)

// Checked says whether git fsck looks into files of this name.
func Checked(name string) bool { return Modules(name) || Attributes(name) }

// RefusedContent says why git fsck --strict would complain of a file's
// content; "" when it would not, or does not look.
func RefusedContent(name string, data []byte) string {
	switch {
	case Attributes(name) && longestLine(data) >= maxAttributeLine:
		return "git refuses attributes with so long a line"
	case Modules(name) && !plainModules(data):
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
