package lint

import (
	"fmt"
	"regexp"
	"strings"

	"abl/orchestrator/spec"
)

// contract looks at one contract by itself.
func (r *remarks) contract(c spec.Contract) {
	action, result := prose(c.Action), prose(c.Result)
	say := func(code, text, hint string) { r.add(c.Line, c.ID, code, c.ID+" "+text, hint) }
	if words, hint := vague(action, result); len(words) > 0 {
		say("vague", "is vague: "+strings.Join(words, ", "), hint)
	}
	if twoMethods.MatchString(action) || sequence.MatchString(action) {
		say("two-actions", "has more than one action", "make a contract of each, or say what happened before with \"after\"")
	}
	switch {
	case chain.MatchString(result) || twoStatuses.MatchString(result):
		say("two-results", "has more than one result", "make a contract of each, with an action of its own")
	case either.MatchString(result):
		say("either", "leaves open which result is right: "+either.FindString(result), "decide for one, or make two contracts whose actions tell the cases apart")
	}
	if word := inside.FindString(action + " → " + result); word != "" {
		say("untestable", fmt.Sprintf("cannot be tested from outside: %q", strings.TrimSpace(word)), "say what somebody sees who cannot look into the system, or move it to the Context")
	}
	_, answers := status(c.Result)
	switch away := nothingThere.FindString(result); {
	case c.Absence && answers:
		say("absence-answer", "is marked (absence), and its result is an answer", "take the mark off: it is for results that are there too when the system is away")
	case away != "" && !c.Absence && !answers:
		say("absence", fmt.Sprintf("expects that something is not there: %q", away), "if the test is right to be ok when the system is away, write (absence) at its end")
	}
}

const methods = `\b(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS)\s+\S`

var (
	twoMethods  = regexp.MustCompile(methods + `.*(?:\b(?:and|then|or|followed by)\b|[,;&+]).*` + methods)
	sequence    = regexp.MustCompile(`(?i)(?:,|;|\band)\s+(?:and )?then\b|&&`)
	chain       = regexp.MustCompile(`[→⇒⟶]|\s(?:->|=>|-->)\s`)
	twoStatuses = regexp.MustCompile(`^[1-5]\d\d\b.*(?:\b(?:and|then)|[,;/])\s*[1-5]\d\d\b(?:\s*$|\s*[,;({])`)
	either      = regexp.MustCompile(`(?i)\S+\s+(?:and/)?or\s+\S+|\beither\b`)
	inside      = regexp.MustCompile(`(?i)\b(?:source code|code ?base|the code|unit[- ]tests?|(?:code|test) coverage|refactor\w*|(?:is|are) implemented|implementation|internally|in memory|singleton|stored procedure|database (?:table|row|record|schema)s?|rows? in the (?:database|table)|(?:the|a|private|public) (?:function|method|class|module|variable)\b|(?:is|are|be|gets?) logged|in the logs?|(?:is|are) hashed|encrypted at rest)`)

	nothingThere = regexp.MustCompile(`(?i)\b(?:connections? (?:is |are )?refused|refuses? (?:the )?connections?|refused|no (?:answer|response|reply)|does not answer|not reachable|unreachable|no longer (?:exists?|there|reachable)|does not exist|gone|nothing (?:answers|listens|is there|happens|is sent)|(?:port|connection) (?:is )?closed)\b`)
)

var quoted = regexp.MustCompile("`[^`]*`|\"[^\"]*\"|“[^”]*”|„[^“”]*[“”]|«[^»]*»|\\{[^{}]*\\}|\\[[^\\[\\]]*\\]")

// prose is a text without what is meant to the letter: code, quotations, data.
func prose(text string) string {
	for range 4 { // data within data
		less := quoted.ReplaceAllString(text, " ")
		if less == text {
			break
		}
		text = less
	}
	return strings.TrimSpace(text)
}
