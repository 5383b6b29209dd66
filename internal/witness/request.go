package witness

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// request is what an action asks for.
type request struct {
	methods  []string
	path     string // without a slash at its end
	segments []segment
	query    url.Values
	more     bool     // the action has words besides, so that other query keys may be meant
	body     *shape   // the JSON document that is sent, nil for none
	headers  []header // that are sent
	lacks    []string // headers that are not sent
	rest     string   // of the action, behind path and query
}

// segment is a part of a path between slashes.
type segment struct {
	text string
	open bool // any value may stand in its place
	id   bool // an example of an id, which the app may choose otherwise
}

// A method with a path, of which a placeholder may have blanks: "GET /notes/{unknown id}".
var methodAndPath = regexp.MustCompile(`\b((?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS)(?: *(?:[|/,]|or|and) *(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS))*) +(?:https?://[^/\s]+)?(/(?:\{[^{}]*\}|<[^<>]*>|[^\s{<])*)`)

var (
	method = regexp.MustCompile(`[A-Z]+`)
	letter = regexp.MustCompile(`\pL`)
	// An id as examples have it: a number, a UUID, or many digits of another kind.
	exampleID = regexp.MustCompile(`^(?:\d+|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9A-HJKMNP-TV-Z]{26}|[0-9a-f]{16,})$`)
)

// readRequests reads the requests of an action, or of what stands above it.
func readRequests(under, action string) (all []request) {
	under, action = strings.ReplaceAll(under, "`", ""), strings.ReplaceAll(action, "`", "")
	for _, above := range []string{"", under + " "} {
		text := above + action
		found := methodAndPath.FindAllStringSubmatchIndex(text, -1)
		if isNow := slices.DeleteFunc(slices.Clone(found), func(m []int) bool { return earlier.MatchString(text[:m[0]]) }); len(isNow) > 0 {
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
			all = append(all, r)
		}
		if len(all) > 0 {
			break
		}
	}
	return all
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

// plainPath makes paths comparable: decoded, and with no slash at their end.
func plainPath(p string) string {
	if plain, err := url.PathUnescape(p); err == nil {
		p = plain
	}
	return strings.TrimRight(p, "/")
}

// placeholder is what stands in a path for a value that is left open: capitals alone ("C", "ID1"),
// {x}, <x>, [x], :x, $x, *, x|y, or an ellipsis.
var placeholder = regexp.MustCompile(`\b[A-Z][A-Z0-9_]*\b|[{<*$…|\[]|\.\.\.|(?:^|/):\w`)

// someWords stand in a path for any value.
var someWords = strings.Fields("unknown missing nonexistent none invalid other any some string number id uuid")

func isOpen(s string) bool { return placeholder.MatchString(s) || slices.Contains(someWords, s) }

// manySegments stands at the end of a path for whatever follows: "/static/*".
var manySegments = regexp.MustCompile(`[*…]|\.\.\.`)

var (
	sentHeader = regexp.MustCompile(`\b((?:[A-Z][A-Za-z0-9]*-)+[A-Z][A-Za-z0-9]*|Authorization|Accept|Cookie|Origin|Range|Referer)(?: header)?\s*:\s*("[^"]*"|[^,;()']+)`)
	// A query that stands behind its name, and not behind the path.
	namedQuery = regexp.MustCompile(`(?i)\bquery(?: string)?:? +\??([\w.-]+=[^\s,;&]+(?:&[\w.-]+=[^\s,;&]+)*)(?:[,;.]?$)`)
	// What stands before a request that was sent earlier, or is sent later.
	earlier = regexp.MustCompile(`(?i)\b(?:after|once|following|before|since)\b[^,;:]*$`)
	// What is said not to be sent.
	withoutHeader = regexp.MustCompile(`(?i)\b(?:without|no) (?:an? |any |the )?(?:((?:access |bearer |auth |api )?token|authorization|authentication|auth|api[- ]key)(?: header)?|((?:[a-z0-9]+-)+[a-z0-9]+)(?: header)?|(cookies?|session(?: cookie)?)|(credentials|login))(?:[ ,.;)]|$)|\b(unauthenticated|anonymous(?:ly)?|not logged in)\b`)
	// What stands before a document that is not the one that is sent.
	notSent = regexp.MustCompile(`(?i)\b(?:other than|different from|instead of|unlike|except|beyond)\b[^;]*$`)
)

// Headers by which clients show who they are.
var (
	tokenHeaders  = []string{"Authorization", "X-Api-Key", "X-Auth-Token", "X-Access-Token"}
	cookieHeaders = []string{"Cookie"}
)

// readRest reads what an action says behind the path: what is sent, and what is not. What is sent is not
// read of the first bytes, which are above the action: the action may be that something else is sent.
func (r *request) readRest(above int) {
	rest := r.rest[above:]
	body, start, end := findDocument(rest, true)
	if start >= 0 {
		before := rest[:start]
		if rest = before + " " + rest[end:]; !negated.MatchString(before) && !notSent.MatchString(before) {
			r.body = body
		}
	}
	for _, m := range sentHeader.FindAllStringSubmatchIndex(rest, -1) {
		value := strings.Trim(rest[m[4]:m[5]], ` ."'`)
		if open := openPart.FindStringIndex(value); open != nil {
			value = value[:open[0]]
		}
		if value = strings.TrimSpace(bareCapital.ReplaceAllString(value, "")); !negated.MatchString(rest[:m[0]]) {
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
	r.more = letter.MatchString(sentHeader.ReplaceAllString(r.rest[:above]+rest, ""))
}

// notAsked says why an exchange has not the request that a contract names.
type notAsked int

const (
	isAsked notAsked = iota
	another          // it has another method, path or query
	others           // it has other headers, or another body
)

// asked compares an exchange with the request. rank says how many segments of the path are the very
// ones that the contract has.
func (r request) asked(x Exchange) (why notAsked, rank int) {
	values, rank, ok := r.hasPath(x)
	switch {
	case !ok || !r.hasQuery(values, r.more):
		return another, 0
	case !r.hasBody(x) || !r.hasHeaders(x):
		return others, rank
	}
	return isAsked, rank
}

// hasPath compares method and path, and returns the query.
func (r request) hasPath(x Exchange) (query url.Values, rank int, ok bool) {
	// The target may have the app's address before the path.
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
		case !s.open && s.text == has[i], last && r.goesOn(s.text, has[i]):
			rank++
		case !s.open && !s.id:
			return nil, 0, false
		}
	}
	query, _ = url.ParseQuery(text)
	return query, rank, true
}

// hasQuery compares the query of a request with the one that the contract has. Where it is open, there
// may be other keys.
func (r request) hasQuery(values url.Values, open bool) bool {
	for key, want := range r.query {
		switch {
		case isOpen(key):
			open = true
		case !values.Has(key):
			return false
		case want[0] != "" && !isOpen(want[0]) && !slices.ContainsFunc(values[key], func(v string) bool {
			return v == want[0] || r.goesOn(want[0], v)
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

// goesOn says that a value is quoted, or goes on behind a blank of the contract: "?q=a b" and "/a b".
func (r request) goesOn(want, has string) bool {
	want, rest := strings.TrimLeft(want, `"'`), r.rest
	more, ok := strings.CutPrefix(has, want)
	return ok && want != "" && strings.HasPrefix(strings.Join(strings.Fields(rest), " "), strings.TrimSpace(more)) &&
		(more == "" || strings.HasPrefix(more, " "))
}

func (r request) hasHeaders(x Exchange) bool {
	for _, h := range r.headers {
		if !h.in(x.SentHeader) {
			return false
		}
	}
	return !slices.ContainsFunc(r.lacks, func(name string) bool { return len(x.SentHeader.Values(name)) > 0 })
}

// in says whether one of these headers is the one that is named.
func (h header) in(all http.Header) bool {
	return slices.ContainsFunc(all.Values(h.name), func(v string) bool {
		return strings.Contains(strings.ToLower(v), strings.ToLower(h.has))
	})
}

// hasBody says whether the body is the document that the contract names. One that nobody could keep
// is not held against the tests.
func (r request) hasBody(x Exchange) bool {
	switch {
	case r.body == nil || len(x.Sent.Begins) < int(min(x.Sent.Bytes, keepBody)):
		return true
	case x.Sent.Bytes > int64(len(x.Sent.Begins)):
		return false
	}
	doc, ok := decode(x.Sent.Begins)
	return ok && r.body.is(doc)
}

// Near says that an exchange has the contract's method, path and query, whatever else was sent.
func (c Claim) Near(x Exchange) bool {
	return slices.ContainsFunc(c.requests, func(r request) bool {
		values, _, ok := r.hasPath(x)
		return ok && r.hasQuery(values, true)
	})
}

// Headers that do not make a request another one.
var besides = regexp.MustCompile(`^(?:X-Request-Id|X-Correlation-Id|Cache-Control|Pragma|User-Agent|Connection|Traceparent|Date)$`)

// Repeats says that an exchange has the same request as another one, but for what clients add to be
// answered anew: keys of the query, and headers of no meaning.
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
			if !besides.MatchString(name) && !slices.Equal(x.SentHeader[name], other.SentHeader[name]) {
				return false
			}
		}
	}
	return true
}
