package spec

import (
	"regexp"
	"strings"
)

const undecided = `tbd|tba|tbc|todo|fixme|wip|xxx+|\?+|\.\.\.|…|-+|–|—|_+|n/a|none yet|` +
	`to be (?:defined|decided|determined|confirmed|done)`

const part = `actions?|requests?|results?|outcomes?|outputs?|responses?|answers?|status(?: codes?)?|behaviou?r`

var (
	// The whole text, with or without brackets.
	undecidedWhole = regexp.MustCompile(`(?i)^[<\[({]?\s*(?:` + undecided + `)\s*[>\])}]?[.!?]*$`)
	bracketedPart  = regexp.MustCompile(`(?i)^\\?[<\[({]{1,2}\s*(?:(?:the|an?|your|expected|actual) )*` +
		`(?:` + part + `)(?: here)?\s*\\?[>\])}]{1,2}[.!]?$`)
	expectedPart = regexp.MustCompile(`(?i)^(?:(?:the|an?|your) )?expected (?:` + part + `)[.!]?$`)
	// In capitals, as in the template ACTION → EXPECTED RESULT.
	capitalPart = regexp.MustCompile(`^(?:ACTION|REQUEST|RESULT|RESPONSE|OUTCOME|OUTPUT)[.!]?$`)
	capitals    = regexp.MustCompile(`\bEXPECTED[ _-](?:RESULT|RESPONSE|OUTCOME|OUTPUT)S?\b`)
	todo        = regexp.MustCompile(`^(?:TBD|TBA|TBC|TODO|FIXME|WIP|XXX)(?:\s*[:(,;]|\s+[–—-]\s)`)
)

// placeholder returns the placeholder in an action or a result, such as TODO or EXPECTED RESULT, ""
// if it has none.
func placeholder(text string) string {
	text = strings.TrimSpace(text)
	for _, whole := range []*regexp.Regexp{undecidedWhole, bracketedPart, expectedPart, capitalPart} {
		if whole.MatchString(text) {
			return text
		}
	}
	if found := capitals.FindString(prose(text)); found != "" {
		return found
	}
	return strings.TrimRight(todo.FindString(text), ":(,;–—- \t")
}
