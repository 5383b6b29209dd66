package verdict

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	cutMark = " … [cut]"
	none    = "(none)"
	tab     = "    "
)

// Sanitize brings an entry into normal form: no control characters, no invalid
// UTF-8, no fence lines, no blank lines at the ends, no common indentation of
// the lines after the first, no field longer than MaxField, none empty. An
// entry that Parse returned is in normal form already.
func Sanitize(e Entry) Entry {
	e.Spec, e.Input, e.Observed = filled(e.Spec), filled(e.Input), filled(e.Observed)
	return e
}

func filled(s string) string {
	if s = normal(strings.Split(clean(s), "\n")); s == "" {
		return none
	}
	return s
}

// clean makes text safe to show: line ends become \n, leading tabs spaces, and
// whatever steers a terminal or hides text becomes U+FFFD.
func clean(s string) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	s = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s)
	lines := strings.Split(strings.Map(visible, s), "\n")
	for i, l := range lines {
		lines[i] = untab(l)
	}
	return strings.Join(lines, "\n")
}

func visible(r rune) rune {
	switch {
	case r == '\n' || r == '\t':
		return r
	case unicode.IsControl(r), unicode.In(r, unicode.Zl, unicode.Zp, unicode.Bidi_Control), r == '\ufeff':
		return utf8.RuneError
	}
	return r
}

func untab(line string) string {
	n := len(line) - len(strings.TrimLeft(line, " \t"))
	return strings.ReplaceAll(line[:n], "\t", tab) + line[n:]
}

// normal joins the lines of a field into its normal form.
func normal(lines []string) string {
	text := shape(lines)
	if len(text) > MaxField {
		// Without its last lines it may have to be dedented anew, and a line cut
		// short can look like a fence.
		text = shape(strings.Split(cut(text), "\n"))
	}
	return text
}

func shape(lines []string) string {
	lines = trimBlank(unfence(lines))
	if len(lines) == 0 {
		return ""
	}
	lines = append([]string{strings.TrimSpace(lines[0])}, dedent(lines[1:])...)
	return strings.Join(lines, "\n")
}

func unfence(lines []string) []string {
	var kept []string
	for _, l := range lines {
		if _, ok := fenceOf(l); !ok {
			kept = append(kept, strings.TrimRightFunc(l, unicode.IsSpace))
		}
	}
	return kept
}

func trimBlank(lines []string) []string {
	for len(lines) > 0 && strings.TrimSpace(lines[0]) == "" {
		lines = lines[1:]
	}
	for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

func cut(s string) string {
	whole := strings.ToValidUTF8(s[:MaxField-len(cutMark)], "") // drops a rune cut in two
	return strings.TrimRightFunc(whole, unicode.IsSpace) + cutMark
}

func dedent(lines []string) []string {
	least := -1
	for _, l := range lines {
		if l != "" && (least < 0 || indent(l) < least) {
			least = indent(l)
		}
	}
	out := make([]string, len(lines))
	for i, l := range lines {
		if l != "" {
			out[i] = l[least:]
		}
	}
	return out
}

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }
