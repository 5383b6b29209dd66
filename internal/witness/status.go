package witness

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// span is a range of statuses or exit codes.
type span struct{ low, high int }

func (s span) wide() bool { return s.low != s.high }

func (s span) String() string {
	if s.wide() {
		return fmt.Sprintf("%d-%d", s.low, s.high)
	}
	return strconv.Itoa(s.low)
}

// allows reports whether the claim allows the status. A claim without statuses allows all.
func (r response) allows(status int) bool {
	return len(r.statuses) == 0 || slices.ContainsFunc(r.statuses,
		func(s span) bool { return s.low <= status && status <= s.high })
}

var (
	// Ranges of statuses: "2xx", "400-499", "400+".
	statusRange = regexp.MustCompile(`(?i)\b(?:([1-5])xx\b|([1-5]\d\d) *(?:(\+)|(?:-|–|\.\.|to) *([1-5]\d\d)\b))`)
	// A status and the word after it.
	statusNumber = regexp.MustCompile(`(?i)(?:^|\b(?:status|code|http|http/[\d.]+|or|either|else|otherwise|(?:one|any|either) of|` + saysStatus + `)|[,/(:;|])\s*(?:an? )?([1-5]\d\d)(?:\s+([\pL€$-]+))?(?:[^\w%.]|\.\W|\.$|$)`)
	never        = regexp.MustCompile(`^ (?:never|not)\b`)
	// A status in an action, where other numbers are frequent.
	statusInAction = regexp.MustCompile(`(?i)(?:\b(?:status(?: code)?(?: is| of|:)?|http|` + saysStatus +
		`)\s*([1-5]\d\d)\b|/\S*:? \(?([1-5]\d\d)\)?$)`)
	// "the user sees a 404 page"
	statusAndNoun = regexp.MustCompile(`\b(?:an?|the) ([1-5]\d\d)(?: OK| [A-Z][a-z]+){0,3} (?:response|status|error|page|reply|code)\b`)
	successful    = regexp.MustCompile(`(?i)\b(?:success(?:ful(?:ly)?)?|succeeds?)\b`)
)

// saysStatus matches the words before a status in a sentence.
const saysStatus = `(?:response|result|answer) (?:is|was)|(?:status|code) (?:should|must|will) be|returns?|returned|responds?(?: with)?|response|answers?(?: with)?|repl(?:y|ies)(?: with)?|error|(?:status|code) (?:is|=|of)|` +
	`gives?|gets?(?: back)?|got|yields?|sends?|fails? with|(?:rejects?|refuses?)(?: \w+){1,3} with|(?:rejected|refused|answered|ends?) with`

// readStatuses reads the statuses from plain, a result without its quoted texts. If it has none, it
// reads them from the action: "GET /health returns 200 → a document".
func (r *response) readStatuses(action, plain string) {
	add := func(s span) {
		known := http.StatusText(s.low) != "" || s.wide() || s.low >= http.StatusBadRequest
		if known && s.low > 100 && !slices.Contains(r.statuses, s) {
			r.statuses = append(r.statuses, s)
		}
	}
	for _, at := range statusRange.FindAllStringSubmatchIndex(plain, -1) {
		if negated.MatchString(plain[:at[0]]) || never.MatchString(plain[at[1]:]) {
			continue
		}
		m := statusRange.FindStringSubmatch(plain[at[0]:at[1]])
		low, _ := strconv.Atoi(m[1] + m[2])
		high, _ := strconv.Atoi(m[4])
		switch {
		case m[1] != "":
			low, high = 100*low, 100*low+99
		case m[3] != "":
			high = 599
		}
		add(span{low, max(low, high)})
	}
	rest := statusRange.ReplaceAllStringFunc(plain, func(s string) string { return strings.Repeat("#", len(s)) })
	for {
		m := statusNumber.FindStringSubmatchIndex(rest)
		if m == nil {
			break
		}
		word := ""
		if m[4] >= 0 {
			word = rest[m[4]:m[5]]
		}
		if status, _ := strconv.Atoi(rest[m[2]:m[3]]); !amount(word) {
			add(span{status, status})
		}
		rest = rest[m[3]:]
	}
	for _, m := range statusAndNoun.FindAllStringSubmatchIndex(plain, -1) {
		if status, _ := strconv.Atoi(plain[m[2]:m[3]]); !negated.MatchString(plain[:m[0]]) {
			add(span{status, status})
		}
	}
	if len(r.statuses) > 0 {
		return
	}
	for _, m := range statusInAction.FindAllStringSubmatch(blankQuotes(action), -1) {
		status, _ := strconv.Atoi(m[1] + m[2])
		add(span{status, status})
	}
	if m := successful.FindStringIndex(plain); len(r.statuses) == 0 && m != nil && !negated.MatchString(plain[:m[0]]) {
		add(span{200, 299})
	}
}
