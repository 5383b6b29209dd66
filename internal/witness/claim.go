package witness

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Claim is what a contract says of one exchange, as far as abl can read it.
type Claim struct {
	requests []request // any of them
	statuses []int     // any of them; none is any
	headers  []header
	texts    []string // that the body has
	json     *shape   // that the body is

	program bool     // an exchange is a run of a program, and a status its exit code
	words   []string // that a run is given
	leaves  bool     // what it prints, or what stands in a file, is named

	text [4]string // that it was read from, behind the kind of app where that is a program
}

// MarshalJSON gives the text, for a witness in a container.
func (c Claim) MarshalJSON() ([]byte, error) { return json.Marshal(c.text) }

// UnmarshalJSON reads that text again.
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

type request struct {
	methods []string
	path    string
	query   url.Values
}

type header struct{ name, has string } // has "" is any value

// A method with a path, of which a placeholder may have blanks: "GET /notes/{unknown id}".
var methodAndPath = regexp.MustCompile(`\b((?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS)(?: *(?:[|/,]|or|and|oder|und) *(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS))*) +(?:https?://[^/\s]+)?(/(?:\{[^{}]*\}|<[^<>]*>|[^\s{<])*)`)

// maxContract is the longest contract that is read, in bytes: the time grows with its square.
const maxContract = 2000

// ReadClaim reads a contract: what stands above it, its action and its result. It is
// false where there is no request, or nothing of an answer that could be compared.
// Conditions in words ("with a valid token") are not read.
func ReadClaim(under, action, result string) (c Claim, ok bool) {
	if len(action)+len(result) > maxContract {
		return c, false
	}
	c.text = [4]string{"", under, action, result}
	for _, text := range []string{action, under} {
		for _, m := range methodAndPath.FindAllStringSubmatch(strings.ReplaceAll(text, "`", ""), -1) {
			c.requests = append(c.requests, readRequestOf(m[1], strings.TrimRight(m[2], `.,;:)"'`)))
		}
		if len(c.requests) > 0 {
			break
		}
	}
	c.readResult(action, result)
	return c, len(c.requests) > 0 && (len(c.statuses) > 0 || len(c.headers) > 0 || len(c.texts) > 0 || c.json != nil)
}

var method = regexp.MustCompile(`[A-Z]+`)

func readRequestOf(methods, target string) request {
	target, query, _ := strings.Cut(target, "?")
	values, _ := url.ParseQuery(query)
	return request{method.FindAllString(methods, -1), plainPath(strings.TrimRight(target, "([")), values}
}

// plainPath makes paths comparable: decoded, and with no slash at their end.
func plainPath(p string) string {
	if plain, err := url.PathUnescape(p); err == nil {
		p = plain
	}
	return strings.TrimRight(p, "/")
}

// placeholder is what stands for a value that the person leaves open: capitals alone
// ("C", "ID1"), {x}, <x>, [x], :x, $x, *, x|y, or an ellipsis.
var placeholder = regexp.MustCompile(`\b[A-Z][A-Z0-9_]*\b|[{<*$…|\[]|\.\.\.|(?:^|/):\w`)

// someWords stand in a path for any value.
var someWords = strings.Fields("unknown missing nonexistent none invalid other any some string number id uuid")

func isOpen(s string) bool { return placeholder.MatchString(s) || slices.Contains(someWords, s) }

// manySegments stands at the end of a path for whatever follows: "/static/*".
var manySegments = regexp.MustCompile(`[*…]|\.\.\.`)

// asked says whether a request is the one that the contract names, whose target may have
// the app's address before the path.
func (r request) asked(method, target string) bool {
	raw, query, _ := strings.Cut(target, "?")
	has, want := strings.Split(plainPath(origin.ReplaceAllString(raw, "")), "/"), strings.Split(r.path, "/")
	if last := want[len(want)-1]; len(has) > len(want) && manySegments.MatchString(last) {
		has = has[:len(want)]
	}
	if !slices.Contains(r.methods, method) || len(has) != len(want) {
		return false
	}
	for i, segment := range want {
		if segment != has[i] && !isOpen(segment) {
			return false
		}
	}
	values, _ := url.ParseQuery(query)
	for key, want := range r.query {
		if !isOpen(key) && (!values.Has(key) || want[0] != "" && !isOpen(want[0]) && !slices.Contains(values[key], want[0])) {
			return false
		}
	}
	return true
}

var (
	// What follows these is about another answer.
	laterAnswer = regexp.MustCompile(`(?i)\b(?:then|following|afterwards|later|subsequent|again|dann|danach|später)\b|\b(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) +/`)
	orOther     = regexp.MustCompile(`\b[1-5]\d\d(?: [A-Z]\w*)*\s+(?:or|oder)\b`)
	conditional = regexp.MustCompile(`(?i)\b(?:or|either|unless|if|otherwise|else|oder|entweder|falls|wenn|sonst)\b`)
	// Statuses of which not each is named: "2xx", "400-499", "400+".
	statusRange  = regexp.MustCompile(`(?i)\b[1-5](?:xx\b|\d\d *(?:\+|(?:-|–|\.\.|to|bis) *[1-5]\d\d\b))`)
	statusNumber = regexp.MustCompile(`(?i)(?:^|\b(?:status|code|http|http/[\d.]+|or|either|oder|sonst|else|otherwise|(?:one|any|either) of|returns|answers?)|[,/(:;|])\s*(?:an? )?([1-5]\d\d)(?:\s+([\pL€$-]+))?(?:[^\w%.]|\.\W|\.$|$)`)
	quoted       = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|“[^”]*”`)
	// What may stand before a text that the body has.
	beforeText = regexp.MustCompile(`(?i)(?:\b[1-5]\d\d|\b(?:body|text|page|html|message|contains|containing|says|saying|reads|with|and|shows))[:\s]*(?:the |exactly )?$`)
	negated    = regexp.MustCompile(`(?i)(?:\b(?:no|not|without|never|nor|cannot|ohne|nicht|nie|keine?)\b|n['’]t\b)[^;]*$`)
	// What says behind a name or a text that it is not there.
	isMissing = regexp.MustCompile(`(?i)^\S*(?: (?:header|key|field|is|are|was|must|may|does|should|be|being|stays?|left))* (?:not|no|never|missing|absent|omitted|removed|hidden|gone|out|fehlt)\b`)
	// A header's name, and what may be its value.
	namedHeader = regexp.MustCompile(`(?i)\b(location|content-type|content-disposition|set-cookie|etag|cache-control|www-authenticate|retry-after|x-[a-z-]+)\b(?: header)?\s*(?::|=| of | is )?\s*([^\s,]*)|\b(link|allow):\s*([^\s,]*)`)
	redirected  = regexp.MustCompile(`(?i)(?:\b30[12378]|\bredirect\w*)(?: \w+)? to\s+(/[^\s,;]*|https?://[^\s,;]+)`)
	// What the app chooses of a header, or may write otherwise.
	chosenValue = regexp.MustCompile(`\?|\d+[.;]*$`)
	origin      = regexp.MustCompile(`^https?://[^/]*`)
)

// units are words that make the number before them an amount, besides plurals.
var units = strings.Fields("ms s sec min h kb mb kib mib byte character char item entry time per max at euro eur usd € $ zeichen sekunden minuten")

// noPlural end with an s and are none.
var noPlural = strings.Fields("as is has plus status unless was this its less success bytes-range redirects contains says returns")

func amount(word string) bool {
	lower := strings.ToLower(word)
	plural := len(word) > 2 && strings.HasSuffix(word, "s") && lower == word
	return slices.Contains(units, lower) || plural && !slices.Contains(noPlural, word)
}

func (c *Claim) readResult(action, result string) {
	result = strings.ReplaceAll(result, "`", "")
	body, start, end := findJSON(result)
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
	for rest := plain; ; {
		m := statusNumber.FindStringSubmatchIndex(rest)
		if m == nil {
			break
		}
		word := ""
		if m[4] >= 0 {
			word = rest[m[4]:m[5]]
		}
		if status, _ := strconv.Atoi(rest[m[2]:m[3]]); status > 100 && !amount(word) && !slices.Contains(c.statuses, status) {
			c.statuses = append(c.statuses, status)
		}
		rest = rest[m[3]:]
	}
	switch {
	case statusRange.MatchString(plain), len(c.statuses) == 1 && orOther.MatchString(plain): // "404 or an empty list"
		c.statuses = nil
		return
	case len(c.statuses) > 1, conditional.MatchString(plain):
		return
	}
	inPath := start >= 0 &&
		(strings.Contains(action, "/"+result[start:end]) || strings.Contains(action, "="+result[start:end]))
	if !negated.MatchString(before) && !inPath { // "GET /echo/{text}" and "200 {text}"
		c.json = body.with(action)
	}
	c.readHeaders(action, plain)
	if !cut {
		c.readTexts(action, before+" "+after)
	}
}

// blankQuotes puts blanks where something is quoted, so that offsets stay.
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

func (c *Claim) readTexts(action, words string) {
	for _, m := range quoted.FindAllStringSubmatchIndex(words, -1) {
		text := strings.TrimRight(strings.Trim(words[m[0]:m[1]], `"“”`), ".,")
		before := blankQuotes(words[:m[0]])
		if beforeText.MatchString(before) && !negated.MatchString(before) && !isMissing.MatchString(words[m[1]:]) &&
			text != "" && !strings.Contains(text, `\`) && !placeholder.MatchString(text) && !strings.Contains(action, text) {
			c.texts = append(c.texts, text)
		}
	}
}
