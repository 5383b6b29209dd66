package spec

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"abl/internal/lazyregexp"
	"abl/internal/wording"
)

// reader collects what there is to say about one spec.
type reader struct {
	name     string
	phase    int
	problems []Problem
	most     int          // warnings that are kept, and errors
	told     map[bool]int // how many there were of each

	hasContracts bool
}

// maxTold keeps a file that is no spec at all from filling a terminal.
const maxTold = 50

func (r *reader) tell(p Problem) {
	p.File, p.Phase = r.name, r.phase
	if r.told[p.Error]++; p.Fatal || r.told[p.Error] <= r.most {
		r.problems = append(r.problems, p)
	}
}

func (r *reader) fatal(line int, code, text, hint string) {
	r.tell(Problem{Line: line, Code: code, Text: text, Hint: hint, Fatal: true})
}

func (r *reader) warn(line int, code, text, hint string) {
	r.tell(Problem{Line: line, Code: code, Text: text, Hint: hint})
}

// wrong is an error: the phase does not start.
func (r *reader) wrong(line int, code, text, hint string) {
	r.tell(Problem{Line: line, Code: code, Text: text, Hint: hint, Error: true})
}

// readable refuses what cannot be read as a spec at all.
func (r *reader) readable(data []byte) bool {
	switch {
	case len(data) > MaxBytes:
		r.fatal(0, "too-large", fmt.Sprintf("the spec is larger than %d bytes", MaxBytes), "split it into phases")
	case len(bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\ufeff")))) == 0:
		r.fatal(0, "empty", "the spec is empty", fmt.Sprintf(`begin it with "# Phase %d: Title"`, r.phase))
	case invalid(data) > 0:
		r.fatal(invalid(data), "not-text", "this is not UTF-8 text", "save the spec as UTF-8")
	default:
		return true
	}
	return false
}

var titleLine = lazyregexp.New(`^#[ \t]+Phase[ \t]+(\d+)[ \t]*:[ \t]*(\S.*?)[ \t]*$`)

// title reads the first line, "# Phase N: Title".
func (r *reader) title(first string) string {
	m := titleLine().FindStringSubmatch(first)
	if m == nil {
		r.fatal(1, "title", fmt.Sprintf(`the first line is %s, want "# Phase %d: Title"`, quote(first), r.phase), "")
		return ""
	}
	if n, err := strconv.Atoi(m[1]); err != nil || n != r.phase {
		r.fatal(1, "number", fmt.Sprintf("the first line says phase %s, the file's name says %d", m[1], r.phase),
			"make the two agree")
	}
	return m[2]
}

// overlooked warns of what is left out although it may be meant.
func (r *reader) overlooked(x *lexer) {
	if x.comment > 0 {
		r.warn(x.comment, "open-comment", "this comment is not closed, so all after it is left out", "close it with -->")
	}
	if x.mark != "" {
		r.warn(x.opened, "open-block", "this code block is not closed, so all after it belongs to it", "close it with the same marks on a line of their own")
	}
	for i, l := range x.lines {
		if i > 0 && l.section == other && x.hasContracts && l.kind != blank && hasArrow(l.text) {
			r.warn(i+1, "outside", quote(strings.TrimSpace(l.text))+" stands outside the Contracts section, so it is no contract", "move it there")
		}
	}
}

// quote shows the beginning of a text.
func quote(s string) string { return strconv.Quote(wording.Cut(s, 60)) }
