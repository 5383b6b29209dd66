package spec

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
)

// reader collects what it finds wrong on its way through one spec.
type reader struct {
	name     string
	number   int
	problems []Problem
}

func (r *reader) fatal(line int, text, hint string) {
	r.problems = append(r.problems,
		Problem{File: r.name, Line: line, Phase: r.number, Text: text, Hint: hint, Fatal: true})
}

// maxWarnings keeps a file that is no spec at all from filling a terminal.
const maxWarnings = 50

func (r *reader) warn(line int, text, hint string) {
	if len(r.problems) >= maxWarnings {
		return
	}
	r.problems = append(r.problems,
		Problem{File: r.name, Line: line, Phase: r.number, Text: text, Hint: hint})
}

// readable refuses what cannot be read as a spec at all.
func (r *reader) readable(data []byte) bool {
	switch {
	case len(data) > MaxBytes:
		r.fatal(0, fmt.Sprintf("the spec is larger than %d bytes", MaxBytes), "split it into phases")
	case len(bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\ufeff")))) == 0:
		r.fatal(0, "the spec is empty", fmt.Sprintf(`begin it with "# Phase %d: Title"`, r.number))
	case invalid(data) > 0:
		r.fatal(invalid(data), "this is not UTF-8 text", "save the spec as UTF-8")
	default:
		return true
	}
	return false
}

var titleLine = regexp.MustCompile(`^#[ \t]+Phase[ \t]+(\d+)[ \t]*:[ \t]*(\S.*?)[ \t]*$`)

// title reads the first line, "# Phase N: Title".
func (r *reader) title(first string) string {
	m := titleLine.FindStringSubmatch(first)
	if m == nil {
		r.fatal(1, fmt.Sprintf(`the first line is %s, want "# Phase %d: Title"`, quote(first), r.number), "")
		return ""
	}
	if n, err := strconv.Atoi(m[1]); err != nil || n != r.number {
		r.fatal(1, fmt.Sprintf("the first line says phase %s, the file's name says %d", m[1], r.number),
			"make the two agree")
	}
	return m[2]
}

// quote shows the beginning of a text.
func quote(s string) string {
	const most = 60
	runes := []rune(s)
	if len(runes) > most {
		return strconv.Quote(string(runes[:most]) + "…")
	}
	return strconv.Quote(s)
}
