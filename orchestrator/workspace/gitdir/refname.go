package gitdir

import "strings"

// ValidRef says whether git takes the name for a ref below refs/heads or
// refs/tags: no way out of the folder, nothing git reads as something else.
func ValidRef(name string) bool {
	if name == "" || name == "@" || len(name) > 1000 || strings.HasSuffix(name, ".") {
		return false
	}
	for _, bad := range []string{"..", "@{", "//"} {
		if strings.Contains(name, bad) {
			return false
		}
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(`~^:?*[\`, r) }) {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return name[0] != '-'
}

// ValidHash says whether the text is the name of an object.
func ValidHash(s string) bool { return len(s) == 40 && strings.Trim(s, "0123456789abcdef") == "" }
