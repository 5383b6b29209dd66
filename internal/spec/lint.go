package spec

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"abl/internal/wording"
)

// Lint checks the specs before a phase spends money on them. It returns the problems found while
// reading, and vague, missing, repeated or contradictory parts, sorted by phase and line. Errors
// stop a phase, warnings do not. docs/specs.md lists the codes.
func (s Set) Lint() []Problem {
	all := s.Problems()
	seen := map[string]Contract{}
	for _, spec := range s.UpTo(MaxPhase) {
		r := &reader{Spec: spec, most: MaxBytes, counted: map[bool]int{}}
		if !spec.HasContracts {
			r.warn(1, "no-contracts", "there is no Contracts section, so every line with an arrow is a contract",
				`write "## Contracts" above the contracts`)
		}
		if !spec.HasContext {
			r.warn(1, "no-context", "there is no Context section",
				`write a section "## Context" with the intent and the decisions`)
		}
		for _, c := range spec.Contracts {
			before := len(r.problems)
			r.lintContract(c)
			r.compareWithEarlier(c, seen)
			for i := range r.problems[before:] {
				r.problems[before+i].Contract = c.ID
			}
		}
		all = append(all, r.problems...)
	}
	slices.SortStableFunc(all, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Phase, b.Phase), cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return all
}

// Stops returns the problems that prevent phase n from starting although its spec can be read. It
// ignores errors in earlier specs: those phases have passed, and their frozen specs cannot be
// fixed.
func (s Set) Stops(n int) []Problem {
	return slices.DeleteFunc(s.Lint(), func(p Problem) bool { return p.Phase != n || !p.Stops() })
}

// lintContract checks one contract.
func (r *reader) lintContract(c Contract) {
	action, result := prose(c.Action), prose(c.Result)
	answers := status(c.Result) != ""
	reported := map[string]bool{}
	for _, s := range smells() {
		text := [...]string{inAction: action, inResult: result, anywhere: action + " → " + result}[s.in]
		if s.code == "vague" {
			text = path.ReplaceAllString(text, " ")
		}
		if s.code == "two-actions" {
			text = earlierRequest.ReplaceAllString(text, " ")
		}
		found := strings.TrimSpace(s.words.FindString(text))
		if found != "" && !reported[s.code] && !(s.code == "absence" && (c.Absence || answers)) {
			reported[s.code] = true
			r.warn(c.Line, s.code, fmt.Sprintf("%s %s: %q", c.ID, s.text, found), s.hint)
		}
	}
	if labelOf(c.Action).role == resultRole {
		r.warn(c.Line, "label-action", c.ID+" has a result before its arrow: "+quote(c.Action),
			"write the action there, or leave out the arrow")
	}
	if c.Absence && answers {
		r.warn(c.Line, "absence-answer", c.ID+" is marked (absence), but its result is a status or an exit code",
			"remove the mark: it is for results that a stopped system also has")
	}
}

// compareWithEarlier compares a contract with the first earlier one with the same action, in this spec or one
// of an earlier phase.
func (r *reader) compareWithEarlier(b Contract, seen map[string]Contract) {
	action := normalize(fmt.Sprint(b.Under, " ", b.Step, " ", b.Action))
	a, twice := seen[action]
	if !twice {
		seen[action] = b
		return
	}
	other := a.ID
	if !strings.HasPrefix(a.ID, fmt.Sprintf("P%d.", r.Number)) {
		other = fmt.Sprintf("%s (%q)", a.ID, wording.Cut(a.Says(), 80))
	}
	x, y := status(a.Result), status(b.Result)
	switch {
	case normalize(a.Result) == normalize(b.Result):
		r.warn(b.Line, "duplicate", b.ID+" repeats "+other,
			"remove one of them: the contracts of a phase hold in all later phases")
	case x != "" && y != "" && x != y:
		report := r.wrong
		if condition.MatchString(a.Result + " " + b.Result) {
			report = r.warn
		}
		report(b.Line, "contradiction",
			fmt.Sprintf("%s expects %s, but %s expects %s for the same action", b.ID, y, other, x),
			"both must hold at the same time: write in each action when it applies, or make them numbered steps below one item")
	default:
		r.warn(b.Line, "contradiction", b.ID+" has the same action as "+other+", but another result",
			"both must hold at the same time: join them into one contract, or write in each action when it applies")
	}
}

var (
	// A result with a condition. The condition belongs into the action, but two such results may
	// agree.
	condition = regexp.MustCompile(`(?i)\(|\b(?:if|when|whenever|unless|otherwise|else|without|once|after|before|until|while|in case|as long as|provided|for|on|at)\b`)
	leadCode  = regexp.MustCompile(`(?i)^(?:(?:http(?:/[\d.]+)?|status|code|status code|returns?|responds? with|answers? with)[ :]+)*([1-5]\d\d)\b`)
	exitCode  = regexp.MustCompile(`(?i)\bexit(?:s|ed)?(?: (?:with|code|status))*[ :]+(\d{1,3})\b`)
	noLetters = regexp.MustCompile("[\\s*_`.,;]+")
	quoted    = regexp.MustCompile("`[^`]*`|\"[^\"]*\"|“[^”]*”|„[^“”]*[“”]|«[^»]*»|\\{[^{}]*\\}|\\[[^\\[\\]]*\\]")
)

// status returns the HTTP status or the exit code of a result, "" if it names none.
func status(result string) string {
	if m := leadCode.FindStringSubmatch(result); m != nil {
		return m[1]
	}
	if m := exitCode.FindStringSubmatch(result); m != nil {
		return "exit code " + m[1]
	}
	return ""
}

// normalize normalizes a text for comparisons.
func normalize(text string) string {
	return strings.TrimSpace(noLetters.ReplaceAllString(text, " "))
}

// prose removes literal parts from a text: code, quotations and data.
func prose(text string) string {
	for range 4 { // nested data
		text = quoted.ReplaceAllString(text, " ")
	}
	return strings.TrimSpace(text)
}

// The part of a contract that a smell applies to.
const inAction, inResult, anywhere = 0, 1, 2

// smell is a pattern of words that make a contract ambiguous or untestable. It does not apply to
// code, quotations and data.
type smell struct {
	code  string
	in    int
	words *regexp.Regexp
	text  string
	hint  string
}

// path matches a part of a path, an address or a flag. Words in it are not vague.
var path = regexp.MustCompile(`\S*[/@=]\S*|(?:^|\s)-\S+`)

// earlierRequest matches a request before the action: "after DELETE /a, GET /a".
var earlierRequest = regexp.MustCompile(`\b(?:[Aa]fter|[Oo]nce|[Ff]ollowing|[Bb]efore|[Ss]ince)\s(?:\w+\s){0,2}?` +
	method + `+`)

const (
	method   = `\b(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS)\s+\S`
	isVague  = "is vague"
	fact     = "write a fact that a test can see: status, fields, text, a number with its unit"
	oneOfTwo = "write one contract for each, with different actions"
)

// smells returns the patterns. Only commands that judge specs compile them.
var smells = sync.OnceValue(func() []smell {
	word := func(words string) *regexp.Regexp { return regexp.MustCompile(`(?i)\b(?:` + words + `)\b`) }
	return []smell{
		{"vague", anywhere, regexp.MustCompile(`\b(?:TBD|TODO|TBA|FIXME)\b|\?\?+`), isVague,
			"decide it, and write the decision"},
		{"vague", anywhere, word(`to be (?:defined|decided)|etc|and so (?:on|forth)|or (?:similar|something)|e\.g|for (?:example|instance)|such as|` +
			`(?:if|as|when|where) (?:possible|needed|necessary|required|appropriate|applicable)|maybe|perhaps|possibly|usually|normally|mostly`),
			isVague, "list all of them, and write a contract for each case"},
		{"vague", inResult, word(`should|might|could|fast(?:er)?|quick(?:ly)?|slow(?:ly)?|soon|efficient(?:ly)?|responsive|reasonabl[ey]|several|various|a few|a lot`),
			isVague, fact},
		{"vague", inResult, word(`(?:correct|proper|appropriate|graceful|smooth|clear|nice|safe|secure)(?:ly)?|as (?:expected|usual|intended)|works?|handles?|supports?|` +
			`(?:is|are) (?:handled|supported)|accordingly|(?:user[- ])?friendly|intuitive|eas(?:y|ily)|simpl[ey]|robust|reliabl[ey]|meaningful|helpful|good|better`),
			isVague, fact},
		{"vague", inResult, regexp.MustCompile(`(?i)^(?:(?:an?|the|some) )?(?:(?:error|success|failure|result|response|answer|output)s?(?: message| response)?|ok|okay|yes|done|succeeds|fails|valid|invalid)[.!]?$`),
			isVague, fact},
		{"two-actions", inAction, regexp.MustCompile(method + `.*(?:\b(?:and|then|or|followed by)\b|[,;&+]).*` + method +
			`|(?i:(?:,|;|\band)\s+(?:and )?then\b|&&)`),
			"has more than one action", `write one contract for each, or write "after" before the earlier action`},
		{"two-results", inResult, regexp.MustCompile(`[→⇒⟶].*|\s(?:->|=>|-->)\s.*|^[1-5]\d\d\b.*(?:\b(?:and|then)|[,;/])\s*[1-5]\d\d\b(?:\s*$|\s*[,;({])`),
			"has more than one result", oneOfTwo},
		{"either", inResult, regexp.MustCompile(`(?i)\S+\s+(?:and/)?or\s+\S+|\beither\b`),
			"leaves open which result is right", oneOfTwo},
		{"untestable", anywhere, word(`source code|code ?base|the code|unit[- ]tests?|(?:code|test) coverage|refactor\w*|implementation|internally|in memory|` +
			`(?:is|are) (?:implemented|logged|hashed)|in the logs?|database (?:table|row|record|schema)s?|rows? in the (?:database|table)|(?:the|a) (?:function|method|class|module|variable)`),
			"cannot be tested from outside",
			"write a result that is visible from outside the system, or move it to the Context"},
		{"absence", inResult, word(`refused|refuses? (?:the )?connections?|no (?:answer|response|reply)|does not answer|(?:not |un)reachable|no longer (?:exists?|there|reachable)|` +
			`does not exist|gone|nothing (?:answers|listens|is there|happens|is sent)|(?:port|connection) (?:is )?closed`),
			"expects that something is absent",
			"if its test should pass against a stopped system, too, write (absence) at its end"},
	}
})
