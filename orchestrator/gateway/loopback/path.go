package loopback

import "strings"

// split parts a request's target into the token, which is its first part, and
// what the server is to be asked: "", "/…" or "?…". Another form of a target has
// no token.
func split(target string) (token, rest string) {
	after, found := strings.CutPrefix(target, "/")
	if !found {
		return "", ""
	}
	end := strings.IndexAny(after, "/?")
	if end < 0 {
		return after, ""
	}
	return after[:end], after[end:]
}

// sound says whether the rest of a target stays below the server's base path,
// however the server reads it.
func sound(rest string) bool {
	path, _, _ := strings.Cut(rest, "?")
	if strings.Contains(path, "//") || strings.ContainsAny(path, "%;") {
		return false
	}
	for part := range strings.SplitSeq(path, "/") {
		if part == "." || part == ".." {
			return false
		}
	}
	return strings.IndexFunc(rest, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune("\\#\"<>^`{|}", r) }) < 0
}

// plain says whether a text is letters, digits, - and _ alone.
func plain(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '-' && r != '_'
	}) < 0
}
