package witness

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// request is a request that an action names.
type request struct {
	methods  []string
	path     string // without a slash at the end
	segments []segment
	query    url.Values
	more     bool     // the action has more words, which may imply other query keys
	body     *shape   // the JSON body, nil for any
	headers  []header // headers that the request has
	lacks    []string // headers that the request does not have
	words    sending  // what the words after the path say
	before   *request // that the tests must have sent earlier, nil for none
	rest     string   // text of the action after path and query
}

// header is a header of a request. has is a part of its value, "" for any value.
type header struct{ name, has string }

// segment is a part of a path between slashes.
type segment struct {
	text string
	open bool // a placeholder for any value
	id   bool // an example of an id that the app chooses
}

// A method with a path. Placeholders may contain blanks: "GET /notes/{unknown id}".
var methodAndPath = regexp.MustCompile(`\b((?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS)(?: *(?:[|/,]|or|and) *(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS))*) +(?:https?://[^/\s]+)?(/(?:\{[^{}]*\}|<[^<>]*>|[^\s{<])*)`)

var (
	method = regexp.MustCompile(`[A-Z]+`)
	letter = regexp.MustCompile(`\pL`)
	// Usual ids in examples: numbers, UUIDs, ULIDs and long hexadecimal numbers.
	exampleID = regexp.MustCompile(`^(?:\d+|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9A-HJKMNP-TV-Z]{26}|[0-9a-f]{16,})$`)
)

// readRequests returns the requests of an action. If it has none, readRequests looks at the text
// above the action, too.
func readRequests(under, action string) (all []request) {
	under, action = strings.ReplaceAll(under, "`", ""), strings.ReplaceAll(action, "`", "")
	for _, above := range []string{"", under + " "} {
		text := above + action
		found := methodAndPath.FindAllStringSubmatchIndex(text, -1)
		before := (*request)(nil)
		if isNow := slices.DeleteFunc(slices.Clone(found), func(m []int) bool {
			return earlier.MatchString(text[:m[0]])
		}); len(isNow) > 0 {
			before = beforeOf(text, found, isNow[0])
			found = isNow
		}
		for i, m := range found {
			end := len(text)
			if i+1 < len(found) {
				end = found[i+1][0]
			}
			target := strings.TrimRight(text[m[4]:m[5]], `.,;:)"'`)
			r := readRequestOf(text[m[2]:m[3]], target)
			from := m[4] + len(target)
			r.rest = text[from:end]
			r.readRest(min(max(0, len(above)-from), len(r.rest)))
			if sentAfter.MatchString(text[:m[0]]) && len(all) > 0 { // "POST /a, then GET /a"
				before, all = &all[len(all)-1], nil
			}
			r.before = before
			all = append(all, r)
		}
		if len(all) > 0 {
			break
		}
	}
	return all
}

// beforeOf returns the request that the action says to have been sent before the one at now.
func beforeOf(text string, found [][]int, now []int) *request {
	for _, m := range found {
		if m[0] != now[0] && sentBefore.MatchString(text[:m[0]]) {
			r := readRequestOf(text[m[2]:m[3]], strings.TrimRight(text[m[4]:m[5]], `.,;:)"'`))
			r.more = true
			return &r
		}
	}
	return nil
}

// Ordered reports whether the contract names an earlier request.
func (c Claim) Ordered() bool {
	return slices.ContainsFunc(c.requests, func(r request) bool { return r.before != nil })
}

// Follows reports whether the tests sent the earlier request of the contract before x, with the same
// values in the path.
func (c Claim) Follows(x Exchange, earlier []Exchange) bool {
	r, _, ok := c.request(x)
	return !ok || r.before == nil || slices.ContainsFunc(earlier, func(y Exchange) bool {
		target, _, _ := r.before.matches(y)
		return target && r.samePath(x, y)
	})
}

// samePath reports whether x and the earlier request y have the same values in placeholders with
// the same name.
func (r request) samePath(x, y Exchange) bool {
	values := func(of request, x Exchange) map[string]string {
		all := map[string]string{}
		raw, _, _ := strings.Cut(origin.ReplaceAllString(x.Target, ""), "?")
		for i, part := range strings.Split(plainPath(raw), "/") {
			if i < len(of.segments) && (of.segments[i].open || of.segments[i].id) {
				all[of.segments[i].text] = part
			}
		}
		return all
	}
	before := values(*r.before, y)
	for name, value := range values(r, x) {
		if other, ok := before[name]; ok && other != value {
			return false
		}
	}
	return true
}

func readRequestOf(methods, target string) request {
	target, query, _ := strings.Cut(target, "?")
	r := request{methods: method.FindAllString(methods, -1), path: plainPath(strings.TrimRight(target, "(["))}
	r.query, _ = url.ParseQuery(query)
	for text := range strings.SplitSeq(r.path, "/") {
		r.segments = append(r.segments, segment{text, isOpen(text), exampleID.MatchString(text)})
	}
	return r
}

// plainPath returns the decoded path without a slash at the end.
func plainPath(p string) string {
	if plain, err := url.PathUnescape(p); err == nil {
		p = plain
	}
	return strings.TrimRight(p, "/")
}

// placeholder finds the notations for an open value in a path: only capitals ("C", "ID1"), {x},
// <x>, [x], :x, $x, *, x|y, or an ellipsis.
var placeholder = regexp.MustCompile(`\b[A-Z][A-Z0-9_]*\b|[{<*$…|\[]|\.\.\.|(?:^|/):\w`)

// someWords are words that mean any value in a path.
var someWords = strings.Fields("unknown missing nonexistent none invalid other any some string number id uuid")

func isOpen(s string) bool { return placeholder.MatchString(s) || slices.Contains(someWords, s) }

// manySegments ends a path that any other segments may follow: "/static/*".
var manySegments = regexp.MustCompile(`[*…]|\.\.\.`)

var (
	sentHeader = regexp.MustCompile(`\b((?:[A-Z][A-Za-z0-9]*-)+[A-Z][A-Za-z0-9]*|Authorization|Accept|Cookie|Origin|Range|Referer)(?: header)?\s*:\s*("[^"]*"|[^,;()']+)`)
	// A query after its name instead of after the path.
	namedQuery = regexp.MustCompile(`(?i)\bquery(?: string)?:? +\??([\w.-]+=[^\s,;&]+(?:&[\w.-]+=[^\s,;&]+)*)(?:[,;.]?$)`)
	// The request after these words is sent earlier or later.
	earlier    = regexp.MustCompile(`(?i)\b(?:after|once|following|before|since)\b[^,;:]*$`)
	sentBefore = regexp.MustCompile(`(?i)\b(?:after|once|following|since)\b[^,;:]*$`)
	sentAfter  = regexp.MustCompile(`(?i)\bthen(?: \w+){0,2} $`)
	// Headers that the request must not have.
	withoutHeader = regexp.MustCompile(`(?i)\b(?:without|no) (?:an? |any |the )?(?:((?:access |bearer |auth |api )?token|authorization|authentication|auth|api[- ]key)(?: header)?|((?:[a-z0-9]+-)+[a-z0-9]+)(?: header)?|(cookies?|session(?: cookie)?)|(credentials|login))(?:[ ,.;)]|$)|\b(unauthenticated|anonymous(?:ly)?|not logged in)\b`)
	// The document after these words is not the body.
	notSent = regexp.MustCompile(`(?i)\b(?:other than|different from|instead of|unlike|except|beyond)\b[^;]*$`)
)

// Headers that identify a client.
var (
	tokenHeaders  = []string{"Authorization", "X-Api-Key", "X-Auth-Token", "X-Access-Token"}
	cookieHeaders = []string{"Cookie"}
)

// readRest reads the text after the path: the headers and the body that the request has or lacks.
// The first above bytes are not a part of the action, so readRest reads no body and no sent headers
// from them.
func (r *request) readRest(above int) {
	rest := r.rest[above:]
	body, start, end := findDocument(rest, true)
	if start >= 0 {
		before := rest[:start]
		rest = before + " " + rest[end:]
		if !negated.MatchString(before) && !notSent.MatchString(before) {
			r.body = body
		}
	}
	for _, m := range sentHeader.FindAllStringSubmatchIndex(rest, -1) {
		value := strings.Trim(rest[m[4]:m[5]], ` ."'`)
		if open := openPart.FindStringIndex(value); open != nil {
			value = value[:open[0]]
		}
		value = strings.TrimSpace(bareCapital.ReplaceAllString(value, ""))
		if !negated.MatchString(rest[:m[0]]) {
			r.headers = append(r.headers, header{rest[m[2]:m[3]], value})
		}
	}
	for _, m := range withoutHeader.FindAllStringSubmatch(r.rest[:above]+rest, -1) {
		switch {
		case m[1] != "":
			r.lacks = append(r.lacks, tokenHeaders...)
		case m[2] != "":
			r.lacks = append(r.lacks, m[2])
		case m[3] != "":
			r.lacks = append(r.lacks, cookieHeaders...)
		default:
			r.lacks = slices.Concat(r.lacks, tokenHeaders, cookieHeaders)
		}
	}
	if m := namedQuery.FindStringSubmatch(rest); m != nil && len(r.query) == 0 {
		r.query, _ = url.ParseQuery(m[1])
	}
	r.words = readSending(r.rest[:above]+rest, above)
	r.words.token = r.words.token && len(r.lacks) == 0
	r.more = letter.MatchString(sentHeader.ReplaceAllString(r.rest[:above]+rest, ""))
}

// matches compares x with the request. target reports whether method, path and query match, and
// whole whether headers and body match, too. rank is the number of literally equal path segments.
func (r request) matches(x Exchange) (target, whole bool, rank int) {
	values, rank, ok := r.hasPath(x)
	target = ok && r.hasQuery(values, r.more)
	return target, target && r.hasBody(x) && r.hasHeaders(x) && r.words.fits(r, x), rank
}

// hasPath compares method and path. It returns the query of x and the rank.
func (r request) hasPath(x Exchange) (query url.Values, rank int, ok bool) {
	// Clients of a proxy send the app's address before the path.
	raw, text, _ := strings.Cut(origin.ReplaceAllString(x.Target, ""), "?")
	has, want := strings.Split(plainPath(raw), "/"), r.segments
	if last := want[len(want)-1].text; len(has) > len(want) && manySegments.MatchString(last) {
		has = has[:len(want)]
	}
	if !slices.Contains(r.methods, x.Method) || len(has) != len(want) {
		return nil, 0, false
	}
	for i, s := range want {
		last := i == len(want)-1 && len(r.query) == 0
		switch {
		case !s.open && s.text == has[i], last && r.valueMatches(s.text, has[i]):
			rank++
		case !s.open && !s.id:
			return nil, 0, false
		}
	}
	query, _ = url.ParseQuery(text)
	return query, rank, true
}

// hasQuery compares the query of an exchange with the contract's. If open is set, other keys are
// allowed.
func (r request) hasQuery(values url.Values, open bool) bool {
	for key, want := range r.query {
		switch {
		case isOpen(key):
			open = true
		case !values.Has(key):
			return false
		case want[0] != "" && !isOpen(want[0]) && !slices.ContainsFunc(values[key], func(v string) bool {
			return v == want[0] || r.valueMatches(want[0], v)
		}):
			return false
		}
	}
	for key := range values {
		if !open && !r.query.Has(key) {
			return false
		}
	}
	return true
}

// valueMatches reports whether the value has is want, which may be quoted or contain blanks in the
// contract: "?q=a b" and "/a b".
func (r request) valueMatches(want, has string) bool {
	want, rest := strings.TrimLeft(want, `"'`), r.rest
	more, ok := strings.CutPrefix(has, want)
	return ok && want != "" && strings.HasPrefix(strings.Join(strings.Fields(rest), " "), strings.TrimSpace(more)) &&
		(more == "" || strings.HasPrefix(more, " "))
}

// hasHeaders reports whether an exchange has the headers of a request, and none of those that it
// lacks.
func (r request) hasHeaders(x Exchange) bool {
	for _, h := range r.headers {
		if !h.isIn(x.SentHeader) {
			return false
		}
	}
	return !slices.ContainsFunc(r.lacks, func(name string) bool { return len(x.SentHeader.Values(name)) > 0 })
}

// isIn reports whether all contains the header.
func (h header) isIn(all http.Header) bool {
	return slices.ContainsFunc(all.Values(h.name), func(v string) bool {
		return strings.Contains(strings.ToLower(v), strings.ToLower(h.has))
	})
}

// hasBody compares the body of x with the contract's. A body that abl could not keep counts as
// equal.
func (r request) hasBody(x Exchange) bool {
	switch {
	case r.body == nil || len(x.Sent.Begins) < int(min(x.Sent.Bytes, keepBody)):
		return true
	case x.Sent.Bytes > int64(len(x.Sent.Begins)):
		return false
	}
	doc, ok := decode(x.Sent.Begins)
	return ok && r.body.fits(doc, nil, true)
}

// Near reports whether x has the contract's method, path and query, with any headers and body.
func (c Claim) Near(x Exchange) bool {
	return slices.ContainsFunc(c.requests, func(r request) bool {
		values, _, ok := r.hasPath(x)
		return ok && r.hasQuery(values, true)
	})
}

// Headers that do not change the meaning of a request.
var neutralHeaders = regexp.MustCompile(`^(?:X-Request-Id|X-Correlation-Id|Cache-Control|Pragma|User-Agent|Connection|Traceparent|Date)$`)

// Repeats reports whether x and other have the same request. It ignores the query and neutral
// headers, which clients may change to get a new response.
func (x Exchange) Repeats(other Exchange) bool {
	path := func(x Exchange) string {
		raw, _, _ := strings.Cut(origin.ReplaceAllString(x.Target, ""), "?")
		return plainPath(raw)
	}
	if x.Method != other.Method || path(x) != path(other) || x.Sent.SHA256 != other.Sent.SHA256 {
		return false
	}
	for _, names := range []http.Header{x.SentHeader, other.SentHeader} {
		for name := range names {
			if !neutralHeaders.MatchString(name) && !slices.Equal(x.SentHeader[name], other.SentHeader[name]) {
				return false
			}
		}
	}
	return true
}
