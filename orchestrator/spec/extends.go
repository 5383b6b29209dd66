package spec

import "strings"

// Begins reports whether the first bytes of the spec are an earlier one. sha and
// size are SHA256 and len(Text) of that.
func (s Spec) Begins(sha string, size int) bool {
	return size >= 0 && size <= len(s.Text) && sum(s.Text[:size]) == sha
}

// Extends reports whether the spec is an earlier one, or that one with something
// appended. What is appended begins on a line of its own and leaves every contract what it was: an
// indented line at the end would change the last one.
func (s Spec) Extends(sha string, size int) bool {
	if !s.Begins(sha, size) {
		return false
	}
	rest := s.Text[size:]
	if strings.TrimSpace(rest) == "" {
		return true
	}
	before := s.Text[:size]
	if before != "" && !strings.HasSuffix(before, "\n") && !strings.HasPrefix(rest, "\n") {
		return false
	}
	old, _ := Parse(s.File, []byte(before), s.Number)
	if len(old.Contracts) > len(s.Contracts) {
		return false
	}
	for i, c := range old.Contracts {
		now := s.Contracts[i]
		if c.Line != now.Line || c.Says() != now.Says() || c.Text != now.Text {
			return false
		}
	}
	return true
}
