package spec

import (
	"regexp"
	"sync"

	"abl/internal/lazyregexp"
)

// part is the part of a contract in which words are looked for.
type part int

const (
	inAction part = iota
	inResult
	anywhere
)

// smell is words that keep a contract from meaning the same to everybody, or from
// being tested. Code, quotations and data are not looked at.
type smell struct {
	code  string
	in    part
	words *regexp.Regexp
	text  string
	hint  string
}

// path is part of a path, an address or a flag, where a vague word is no word.
var path = lazyregexp.New(`\S*[/@=]\S*|(?:^|\s)-\S+`)

const (
	method   = `\b(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS)\s+\S`
	isVague  = "is vague"
	fact     = "write what is seen, as a fact: status, fields, text, a number with its unit"
	oneOfTwo = "make a contract of each, with an action of its own"
)

// smells are compiled by the commands alone that judge specs.
var smells = sync.OnceValue(func() []smell {
	word := func(words string) *regexp.Regexp { return regexp.MustCompile(`(?i)\b(?:` + words + `)\b`) }
	return []smell{
		{"vague", anywhere, regexp.MustCompile(`\b(?:TBD|TODO|TBA|FIXME)\b|\?\?+`), isVague, "decide it, and write what was decided"},
		{"vague", anywhere, word(`to be (?:defined|decided)|etc|and so (?:on|forth)|or (?:similar|something)|e\.g|for (?:example|instance)|such as|` +
			`(?:if|as|when|where) (?:possible|needed|necessary|required|appropriate|applicable)|maybe|perhaps|possibly|usually|normally|mostly`),
			isVague, "write down all of them, and a contract for each case"},
		{"vague", inResult, word(`should|might|could|fast(?:er)?|quick(?:ly)?|slow(?:ly)?|soon|efficient(?:ly)?|responsive|reasonabl[ey]|several|various|a few|a lot`),
			isVague, fact},
		{"vague", inResult, word(`(?:correct|proper|appropriate|graceful|smooth|clear|nice|safe|secure)(?:ly)?|as (?:expected|usual|intended)|works?|handles?|supports?|` +
			`(?:is|are) (?:handled|supported)|accordingly|(?:user[- ])?friendly|intuitive|eas(?:y|ily)|simpl[ey]|robust|reliabl[ey]|meaningful|helpful|good|better`),
			isVague, fact},
		{"vague", inResult, regexp.MustCompile(`(?i)^(?:(?:an?|the|some) )?(?:(?:error|success|failure|result|response|answer|output)s?(?: message| response)?|ok|okay|yes|done|succeeds|fails|valid|invalid)[.!]?$`),
			isVague, fact},
		{"two-actions", inAction, regexp.MustCompile(method + `.*(?:\b(?:and|then|or|followed by)\b|[,;&+]).*` + method + `|(?i:(?:,|;|\band)\s+(?:and )?then\b|&&)`),
			"has more than one action", `make a contract of each, or say what happened before with "after"`},
		{"two-results", inResult, regexp.MustCompile(`[→⇒⟶].*|\s(?:->|=>|-->)\s.*|^[1-5]\d\d\b.*(?:\b(?:and|then)|[,;/])\s*[1-5]\d\d\b(?:\s*$|\s*[,;({])`),
			"has more than one result", oneOfTwo},
		{"either", inResult, regexp.MustCompile(`(?i)\S+\s+(?:and/)?or\s+\S+|\beither\b`), "leaves open which result is right", oneOfTwo},
		{"untestable", anywhere, word(`source code|code ?base|the code|unit[- ]tests?|(?:code|test) coverage|refactor\w*|implementation|internally|in memory|` +
			`(?:is|are) (?:implemented|logged|hashed)|in the logs?|database (?:table|row|record|schema)s?|rows? in the (?:database|table)|(?:the|a) (?:function|method|class|module|variable)`),
			"cannot be tested from outside", "say what somebody sees who cannot look into the system, or move it to the Context"},
		{"absence", inResult, word(`refused|refuses? (?:the )?connections?|no (?:answer|response|reply)|does not answer|(?:not |un)reachable|no longer (?:exists?|there|reachable)|` +
			`does not exist|gone|nothing (?:answers|listens|is there|happens|is sent)|(?:port|connection) (?:is )?closed`),
			"expects that something is not there", "if the test is right to be ok when the system is away, write (absence) at its end"},
	}
})
