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
	requests []request // alternatives
	statuses []span    // alternatives; empty means any
	headers  []header
	texts    []written // parts of the body
	json     *shape    // the body

	program bool     // the app is a program: an exchange is a run, a status its exit code
	words   []string // arguments of the run
	leaves  bool     // the contract names output or the content of a file

	text [4]string // the type of app, "" for HTTP, and the text that the claim was read from
}

// MarshalJSON returns the text of the contract, for a proxy in a container.
func (c Claim) MarshalJSON() ([]byte, error) { return json.Marshal(c.text) }

// UnmarshalJSON reads the claim from the text that MarshalJSON returned.
func (c *Claim) UnmarshalJSON(data []byte) error {
	var text [4]string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	if *c, _ = ReadClaim(text[1], text[2], text[3]); text[0] != "" {
		*c, _ = ReadRun(text[2], text[3])
	}
	return nil
}

type header struct{ name, has string } // has is a part of the value, "" for any value

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
	return c, len(c.requests) > 0 && (len(c.statuses) > 0 || len(c.headers) > 0 || len(c.texts) > 0 || c.json != nil)
}

var (
	// The text after these words describes another response.
	laterAnswer = regexp.MustCompile(`(?i)\b(?:then|following|afterwards|later|subsequent|again)\b|\b(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) +/`)
	orOther     = regexp.MustCompile(`\b[1-5]\d\d(?: [A-Z]\w*)*\s+or\b`)
	conditional = regexp.MustCompile(`(?i)\b(?:or|either|unless|if|otherwise|else)\b`)
	quoted      = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|“[^”]*”`)
	// The text after these words does not have to be in the body.
	notInBody = regexp.MustCompile(`(?i)\b(?:by|than|like|for|from|to|per|unlike|cookie|header|parameter|query)[:\s]*(?:the |an? )?$|=\s*$`)
	// The text before these words is the name of something else.
	isName = regexp.MustCompile(`(?i)^ (?:cookie|header|parameter|query)\b`)
	// plainText finds a text without quotes. A match of describes is a description, not a text.
	plainText = regexp.MustCompile(`(?i)\b(?:with (?:the )?text|with (?:the |a )?body|body (?:is|of))[: ]\s*([^\s,;][^,;]*?)\s*(?:[,;]|\.?$| and | but )`)
	describes = regexp.MustCompile(`(?i)\b(?:of|that|in|which|containing|contains|having|from|as|sent|for|the|an?|it|is|same|with|no|\d+ (?:bytes|characters)|named|saying|says|like|to|describing|explaining|stating|empty|only|unchanged)\b|^(?:json|html|xml|text)$`)
	negated   = regexp.MustCompile(`(?i)(?:\b(?:no|not|without|never|nor|cannot)\b|n['’]t\b)[^;]*$`)
	// The name or text before these words must not be in the response.
	isMissing = regexp.MustCompile(`(?i)^\S*(?: (?:header|key|field|is|are|was|must|may|does|should|be|being|stays?|left))* (?:not|no|never|missing|absent|omitted|removed|hidden|gone|out)\b`)
	// A header's name, and possibly its value.
	namedHeader = regexp.MustCompile(`(?i)\b(location|content-type|content-disposition|set-cookie|etag|cache-control|www-authenticate|retry-after|x-[a-z-]+)\b(?: header)?\s*(?::|=| of | is )?\s*([^\s,]*)|\b(link|allow):\s*([^\s,]*)`)
	redirected  = regexp.MustCompile(`(?i)(?:\b30[12378]|\bredirect\w*)(?: \w+)? to\s+(/[^\s,;]*|https?://[^\s,;]+)`)
	// The part of a header's value that the app chooses.
	chosenValue = regexp.MustCompile(`\?|\d+[.;]*$`)
	origin      = regexp.MustCompile(`^https?://[^/]*`)
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
		c.json = body.opened(vars, c.ids())
	}
	c.readHeaders(action, plain)
	if !cut {
		c.readTexts(vars, before+" "+after)
	}
}

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
		return found || slices.ContainsFunc(c.texts, func(w written) bool { return strings.Contains(w.text, text) })
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

func (c *Claim) readHeaders(action, plain string) {
	add := func(at, end int, name, has string) {
		switch has = strings.TrimRight(has, ".;:)"); name {
		case "location":
			if m := chosenValue.FindStringIndex(has); m != nil {
				has = has[:m[0]]
			}
			if origin.MatchString(has) && strings.Contains(action, has) {
				has = ""
			}
			has = origin.ReplaceAllString(has, "")
		case "set-cookie":
			cookie, _, _ := strings.Cut(has, "=")
			has = cookie
		case "etag":
			has = ""
		}
		if m := placeholder.FindStringIndex(has); m != nil {
			has = has[:m[0]]
		}
		known := func(h header) bool { return h.name == name }
		if negated.MatchString(plain[:at]) || isMissing.MatchString(plain[end:]) || slices.ContainsFunc(c.headers, known) {
			return
		}
		c.headers = append(c.headers, header{name, has})
	}
	for _, m := range redirected.FindAllStringSubmatchIndex(plain, -1) {
		add(m[0], m[1], "location", plain[m[2]:m[3]])
	}
	for _, m := range namedHeader.FindAllStringSubmatchIndex(plain, -1) {
		name, has := m[2:4], m[4:6]
		if m[2] < 0 {
			name, has = m[6:8], m[8:10]
		}
		value, sep := plain[has[0]:has[1]], plain[name[1]:has[0]]
		if !strings.ContainsAny(sep, ":=") {
			if strings.ContainsAny(plain[name[0]:name[0]+1], "lx") && !strings.Contains(sep, "header") {
				continue // "the location of the shop", "its x-coordinate"
			}
			if !strings.Contains(value, "/") {
				value = "" // "a Location header with …"
			}
		}
		add(m[0], name[1], strings.ToLower(plain[name[0]:name[1]]), value)
	}
}

// maxTexts is the maximum number of texts in a contract.
const maxTexts = 10

func (c *Claim) readTexts(vars []string, words string) {
	for _, m := range quoted.FindAllStringSubmatchIndex(words, maxTexts) {
		before := blankQuotes(words[:m[0]])
		if !notInBody.MatchString(before) && !negated.MatchString(before) &&
			!isMissing.MatchString(words[m[1]:]) && !isName.MatchString(words[m[1]:]) {
			c.addText(vars, strings.TrimRight(unquoted(words[m[0]:m[1]]), ".,"))
		}
	}
	if m := plainText.FindStringSubmatchIndex(blankQuotes(words)); m != nil && !negated.MatchString(words[:m[0]]) {
		if text := strings.TrimSpace(words[m[2]:m[3]]); !describes.MatchString(text) && !strings.HasPrefix(text, `"`) {
			c.addText(vars, text)
		}
	}
}

func (c *Claim) addText(vars []string, text string) {
	if w := (written{text, vars}); text != "" && !w.open() {
		c.texts = append(c.texts, w)
	}
}

// unquoted returns the content of a quoted text.
func unquoted(q string) string {
	var text string
	if json.Unmarshal([]byte(q), &text) == nil {
		return text
	}
	return strings.Trim(q, `"“”`)
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
		if keyAndValue.MatchString(text) && !headerInCode.MatchString(text) {
			return strconv.Quote(text)
		}
		if wordsInCode.MatchString(text) || strings.Contains(text, `"`) || bareCapital.FindString(text) == text && len(text) == 1 {
			return text
		}
		return `"` + text + `"`
	})
}
