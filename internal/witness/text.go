package witness

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const cutMark = " … [cut]"

// readable is a line as it is read: without the CR of a line end, cut at
// MaxLine, every white space a space, and U+FFFD for what is no text, steers a
// terminal or cannot be seen.
func readable(line []byte) (s string, long bool) {
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	if long = len(line) > MaxLine; long {
		line = line[:MaxLine]
	}
	return strings.Map(visible, strings.ToValidUTF8(string(line), "\ufffd")), long
}

func visible(r rune) rune {
	switch {
	case r == '\t' || unicode.Is(unicode.Zs, r):
		return ' '
	case unicode.IsControl(r), unicode.In(r, unicode.Zl, unicode.Zp, unicode.Cf):
		return utf8.RuneError
	}
	return r
}

// cut shortens a text to max bytes, and says so.
func cut(s string, max int) string {
	if len(s) <= max {
		return s
	}
	whole := strings.ToValidUTF8(s[:max-len(cutMark)], "") // drops a rune cut in two
	return strings.TrimSpace(whole) + cutMark
}

// value is the normal form of a field's text, which may have several lines.
func value(s string) string {
	lines := strings.Split(strings.ToValidUTF8(s, "\ufffd"), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(strings.Map(visible, strings.TrimSuffix(l, "\r")), " ")
	}
	return cut(strings.Trim(strings.Join(lines, "\n"), "\n "), MaxValue)
}
