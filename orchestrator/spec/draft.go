package spec

import (
	"fmt"
	"regexp"
	"strings"
)

// draft is what a contract still lacks while lines may be added to it.
type draft struct {
	first, last int // indexes of its lines
	more        []string
	id          ownID // as it is written
}

// finish completes the contracts.
func (f *finder) finish() {
	for i, d := range f.drafts {
		c := &f.found[i]
		c.Text = f.text(d.first, d.last)
		if len(d.more) > 0 {
			c.Result = join(append([]string{c.Result}, d.more...)...)
		}
	}
}

// text is what stands in the spec from unit or line first to last.
func (f *finder) text(first, last int) string {
	lead := []rune(f.lines[first])
	all := append([]string{string(lead[min(f.cuts[first], len(lead)):])}, f.lines[first+1:last+1]...)
	return strings.TrimSpace(strings.Join(all, "\n"))
}

// absence is the mark at the beginning or the end: elsewhere it is data.
var absence = regexp.MustCompile(`(?i)^\s*[*_]{0,2}\(absence\)[*_]{0,2}|\s*[*_]{0,2}\(absence\)[*_]{0,2}[.;]?$`)

// add takes a contract that stands in lines first to last.
func (f *finder) add(first, last int, action, result string) {
	if len(f.found) >= MaxContracts {
		if !f.full {
			f.fatal(first+1, "too-many", fmt.Sprintf("the spec has more than %d contracts", MaxContracts), "split it into phases")
		}
		f.full = true
		return
	}
	c := Contract{Text: f.text(first, last), Line: first + 1, Under: f.under(), Place: f.place()}
	c.Absence = absence.MatchString(action) || absence.MatchString(result)
	c.Action = tidy(absence.ReplaceAllString(action, ""))
	c.Result = tidy(absence.ReplaceAllString(result, ""))
	id, said := written(c.Action)
	c.Action = tidy(said)
	if c.Under == c.Action { // a title that is the action itself
		c.Under = ""
	}
	c.Under = strings.TrimSuffix(c.Under, ": "+c.Action)
	switch {
	case strings.HasPrefix(c.Text, "~~") && strings.HasSuffix(c.Text, "~~"):
		f.warn(c.Line, "struck", quote(c.Text)+" is struck out, so it is no contract", "delete it, or take the marks off")
	case c.Action == "ACTION" && strings.HasSuffix(c.Result, "RESULT"): // the form itself, as a reminder
	case c.Action == "":
		f.wrong(c.Line, "no-action", quote(c.Text)+" has no action", "write ACTION → EXPECTED RESULT")
	case unsaid(c.Result):
		f.wrong(c.Line, "no-result", quote(c.Text)+" has no result", "write after the arrow what is seen from outside, such as 200 {\"id\": N}")
	default:
		f.found, f.drafts = append(f.found, c), append(f.drafts, draft{first: first, last: last, id: id})
	}
}

// wrong is an error where we are sure to be among contracts: elsewhere an arrow
// may be part of prose.
func (f *finder) wrong(line int, code, text, hint string) {
	f.tell(Problem{Line: line, Code: code, Text: text, Hint: hint, Error: f.hasContracts})
}

var placeholder = regexp.MustCompile(`(?i)^(?:tbd|todo|tba|fixme|\?+|\.\.\.|…|-+|n/a|none yet|to be (?:defined|decided|done))[.!?]*$`)

// unsaid says that a result is missing, whatever stands in its place.
func unsaid(result string) bool { return result == "" || placeholder.MatchString(result) }
