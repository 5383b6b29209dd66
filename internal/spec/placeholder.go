package spec

import (
	"regexp"
	"strings"

	"abl/internal/lazyregexp"
)

const undecided = `tbd|tba|tbc|todo|fixme|wip|xxx+|\?+|\.\.\.|…|-+|–|—|_+|n/a|none yet|` +
	`to be (?:defined|decided|determined|confirmed|done)`

const part = `actions?|requests?|results?|outcomes?|outputs?|responses?|answers?|status(?: codes?)?|behaviou?r`

var (
	// The whole text, with or without brackets.
	undecidedWhole = lazyregexp.New(`(?i)^[<\[({]?\s*(?:` + undecided + `)\s*[>\])}]?[.!?]*$`)
	bracketedPart  = lazyregexp.New(`(?i)^\\?[<\[({]{1,2}\s*(?:(?:the|an?|your|expected|actual) )*` +
		`(?:` + part + `)(?: here)?\s*\\?[>\])}]{1,2}[.!]?$`)
	expectedPart = lazyregexp.New(`(?i)^(?:(?:the|an?|your) )?expected (?:` + part + `)[.!]?$`)
	// In capitals, as in the template ACTION → EXPECTED RESULT.
	capitalPart = lazyregexp.New(`^(?:ACTION|REQUEST|RESULT|RESPONSE|OUTCOME|OUTPUT)[.!]?$`)
	capitals    = lazyregexp.New(`\bEXPECTED[ _-](?:RESULT|RESPONSE|OUTCOME|OUTPUT)S?\b`)
	todo        = lazyregexp.New(`^(?:TBD|TBA|TBC|TODO|FIXME|WIP|XXX)(?:\s*[:(,;]|\s+[–—-]\s)`)
)

// placeholder returns the placeholder in an action or a result, such as TODO or EXPECTED RESULT, ""
// if it has none.
func placeholder(text string) string {
	text = strings.TrimSpace(text)
	for _, whole := range []func() *regexp.Regexp{undecidedWhole, bracketedPart, expectedPart, capitalPart} {
		if whole().MatchString(text) {
			return text
		}
	}
	if found := capitals().FindString(prose(text)); found != "" {
		return found
	}
	return strings.TrimRight(todo().FindString(text), ":(,;–—- \t")
}
