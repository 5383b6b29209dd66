package witness

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Claim is the part of a contract that abl can compare with one exchange.
type Claim struct {
	response

	requests []request // alternatives
	next     *Claim    // a request that follows, and its response; nil for none

	program bool      // the app is a program: an exchange is a run, a status its exit code
	command []string  // the words of the command
	words   []string  // arguments of the run
	bare    bool      // the run has no other arguments
	leaves  bool      // the contract names output or the content of a file
	printed []printed // texts of the output and the files
	silent  []stream  // streams without output
	ordered bool      // the texts are in the order of the contract

	text [4]string // the type of app, "" for HTTP, and the text that the claim was read from
}

// response is what a claim says of the response, or of the end of a run.
type response struct {
	statuses []span // alternatives; empty means any
	headers  []namedHeader
	texts    []bodyText // parts of the body
	json     *shape     // the body
	form     form       // what the body is in other respects
}

// MarshalJSON returns the text of the contract, for a proxy in a container.
func (c Claim) MarshalJSON() ([]byte, error) { return json.Marshal(c.text) }

// UnmarshalJSON reads the claim from the text that MarshalJSON returned.
func (c *Claim) UnmarshalJSON(data []byte) error {
	var text [4]string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	*c, _ = ReadClaim(text[1], text[2], text[3])
	if text[0] != "" {
		*c, _ = ReadRun(text[2], text[3])
	}
	return nil
}

// maxContract is the maximum size of a contract in bytes. The time to read it grows with the square
// of the size.
const maxContract = 2000

// ReadClaim reads a contract: the text above it, its action and its result. It returns false if the
// contract has no request or names nothing of the response that can be compared. It ignores
// conditions in words ("with a valid token").
func ReadClaim(under, action, result string) (c Claim, ok bool) {
	if len(action)+len(result) > maxContract {
		return c, false
	}
	c.text = [4]string{"", under, action, result}
	c.requests = readRequests(under, action)
	c.readResult(action, result)
	c.echo()
	c.readNext(result)
	return c, len(c.requests) > 0 && (len(c.statuses) > 0 || len(c.headers) > 0 || c.ofBody())
}

var (
	// The text after these words describes another response.
	laterAnswer = regexp.MustCompile(`(?i)\b(?:then|following|afterwards|later|subsequent|again)\b|\b(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) +/`)
	anyOrder    = regexp.MustCompile(`(?i)\b(?:any|no|arbitrary)(?: \w+)? order\b|\bunordered\b|\border (?:does not|doesn['’]t) matter`)
	orOther     = regexp.MustCompile(`\b[1-5]\d\d(?: [A-Z]\w*)*\s+or\b`)
	conditional = regexp.MustCompile(`(?i)\b(?:or|either|unless|if|otherwise|else)\b`)
	quoted      = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|“[^”]*”`)
	negated     = regexp.MustCompile(`(?i)(?:\b(?:no|not|without|never|nor|cannot)\b|n['’]t\b)[^;]*$`)
	// The name or text before these words must not be in the response.
	isMissing = regexp.MustCompile(`(?i)^\S*(?: (?:header|key|field|is|are|was|must|may|does|should|be|being|stays?|left))* (?:not|no|never|missing|absent|omitted|removed|hidden|gone|out)\b`)
	origin    = regexp.MustCompile(`^https?://[^/]*`)
)

// units are words that turn the number before them into an amount. Plurals do so, too.
var units = strings.Fields("ms s sec min h kb mb kib mib byte character char item entry time per max at euro eur " +
	"usd € $")

// notPlural lists words that end with an s and are not plurals.
var notPlural = strings.Fields("as is has plus status unless was this its less success bytes-range redirects " +
	"contains says returns")

func amount(word string) bool {
	lower := strings.ToLower(word)
	plural := len(word) > 2 && strings.HasSuffix(word, "s") && lower == word
	return slices.Contains(units, lower) || plural && !slices.Contains(notPlural, word)
}

// readResult reads the expected response: status, headers, document and texts.
func (c *Claim) readResult(action, result string) {
	result = plainCode(result)
	body, start, end := findDocument(result, false)
	before, after := result, ""
	if start >= 0 {
		before, after = result[:start], result[end:]
	}
	cut := false
	if m := laterAnswer.FindStringIndex(blankQuotes(before)); m != nil {
		before, after, body, cut = before[:m[0]], "", nil, true
	} else if m := laterAnswer.FindStringIndex(blankQuotes(after)); m != nil {
		after, cut = after[:m[0]], true
	}
	plain := blankQuotes(before) + " " + blankQuotes(after)
	c.readStatuses(action, plain)
	alternative := len(c.statuses) > 1 || len(c.statuses) == 1 && c.statuses[0].wide()
	switch {
	case len(c.statuses) == 1 && orOther.MatchString(plain): // "404 or an empty list"
		c.statuses = nil
		return
	case alternative && strings.Contains(plain, "|"), len(c.statuses) > 1, conditional.MatchString(plain):
		return
	}
	inPath := start >= 0 &&
		(strings.Contains(action, "/"+result[start:end]) || strings.Contains(action, "="+result[start:end]))
	vars := variables(action, result)
	if !negated.MatchString(before) && !inPath { // "GET /echo/{text}" and "200 {text}"
		c.json = body.opened(vars, c.ids()).unordered(anyOrder.MatchString(plain))
	}
	c.readHeaders(vars, before+" "+after)
	c.form = readForm(plain)
	if !cut {
		c.readTexts(vars, before+" "+after)
	}
}

// thenRequest finds a request that follows in a result, and its result.
var thenRequest = regexp.MustCompile(`(?i)\b(?:then|afterwards|and|later)(?: an?)? ((?-i:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) +/[^→]*?)(?: then)? *(?:→|->|=>|\b(?:returns|gives|responds with|answers with|is)\b) *(.+)$`)

// readNext reads the request that follows: "204, then GET /notes/N → 404".
func (c *Claim) readNext(result string) {
	m := thenRequest.FindStringSubmatch(blankQuotes(strings.ReplaceAll(result, "`", "")))
	if m == nil || len(c.requests) != 1 {
		return
	}
	if next, ok := ReadClaim("", m[1], m[2]); ok {
		for i := range next.requests {
			next.requests[i].before = &c.requests[0]
		}
		c.next = &next
	}
}

// Next returns the claim of the request that follows in the contract, or nil.
func (c Claim) Next() *Claim { return c.next }

// ids returns the example ids in the paths of the requests.
func (c *Claim) ids() (all []string) {
	for _, r := range c.requests {
		for _, s := range r.segments {
			if s.id {
				all = append(all, s.text)
			}
		}
	}
	return all
}

// echo marks the texts of the requests that the response repeats.
func (c *Claim) echo() {
	answer := func(text string) (found bool) {
		if c.json != nil {
			c.json.leaves("", func(_ string, leaf *shape) {
				of, ok := leaf.of.(string)
				found = found || ok && strings.Contains(of, text)
			})
		}
		for _, h := range c.headers {
			found = found || strings.Contains(h.value.text, text)
		}
		return found || slices.ContainsFunc(c.texts, func(p bodyText) bool { return strings.Contains(p.text, text) })
	}
	for i := range c.requests {
		c.requests[i].body.opened(variables(c.text[1]+" "+c.text[2], ""), nil)
		c.requests[i].body.echo(answer)
	}
}

// blankQuotes replaces quoted texts with blanks of the same length.
func blankQuotes(s string) string {
	return quoted.ReplaceAllStringFunc(s, func(q string) string { return strings.Repeat(" ", len(q)) })
}

var (
	headerInCode = regexp.MustCompile(`^(?:[A-Z][A-Za-z]*(?:-[A-Z][A-Za-z]*)*|(?i:[a-z]+-[a-z-]+|location|etag|allow)):|^https?:|^HTTP/`)
	codeSpan     = regexp.MustCompile("`([^`]+)`")
	// Code that is read like prose: a status, a document, a header, a request, a path or a quoted
	// text.
	wordsInCode = regexp.MustCompile(`^\s*(?:\d{3}\b|[{\[<"“/:]|HTTP/|https?://|[A-Z][A-Za-z]*(?:-[A-Z][A-Za-z]*)*:|(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS)\b|(?i:[a-z]+-[a-z-]+|location|etag|allow)$|(?i:[a-z]+/[a-z+.-]+)(?:;.*)?$)`)
)

// plainCode removes the backticks from a result. It quotes code that is a text.
func plainCode(result string) string {
	return codeSpan.ReplaceAllStringFunc(result, func(code string) string {
		text := code[1 : len(code)-1]
		if keyAndValue.MatchString(text) && !headerInCode.MatchString(text) || hasTag(text) {
			return strconv.Quote(text)
		}
		isText := strings.ContainsAny(text[:1], "{[") && !isDocument(text)
		if wordsInCode.MatchString(text) && !isText || strings.Contains(text, `"`) || bareCapital.FindString(text) == text && len(text) == 1 {
			return text
		}
		return `"` + text + `"`
	})
}
