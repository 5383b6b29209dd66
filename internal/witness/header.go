package witness

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// namedHeader is a header that a contract names in a response.
type namedHeader struct {
	name   string // in lower case
	value  written
	absent bool // the response must not have it
}

var (
	// A header's name. One with capitals may have any name.
	headerName = regexp.MustCompile(`\b(?:(?i:location|content-type|content-disposition|set-cookie|etag|cache-control|www-authenticate|retry-after|x-[a-z-]+)|Allow|Link|Vary|Expires|[A-Z][A-Za-z0-9]*(?:-[A-Z][A-Za-z0-9]*)+)\b`)
	// The text after the name: its separator and the first word of its value.
	headerValue = regexp.MustCompile(`^((?: header)?\s*(?::|=| of | is )?\s*)("[^"]*"|[^\s,;]*)`)
	// The rest of a value: parameters, and items of a list.
	headerParameters = regexp.MustCompile(`^(?:;? ?(?:realm|charset|filename|boundary|rel)=(?:"[^"]*"|[^",; ]*)|; ?[\w-]+(?:=(?:"[^"]*"|[^\s,;"]*))?)+`)
	headerItems      = regexp.MustCompile(`^(?:, ?(?:(?:no|must|max|s|stale|proxy)-[a-z-]+(?:=\d+)?|private|public|immutable|[A-Z*][A-Za-z]*(?:-[A-Za-z]+)*))+`)
	listHeader       = regexp.MustCompile(`^(?:cache-control|allow|vary|access-control-(?:allow|expose)-(?:methods|headers))$`)
	usualHeader      = regexp.MustCompile(`^(?:location|content-type|content-disposition|set-cookie|etag|cache-control|www-authenticate|retry-after|x-[a-z-]+)$`)
	redirected       = regexp.MustCompile(`(?i)(?:\b30[12378]|\bredirect\w*)(?: \w+)? to\s+(/[^\s,;]*|https?://[^\s,;]+)`)
	// The header after these words must be missing.
	withoutName = regexp.MustCompile(`(?i)\b(?:without|no)(?: (?:an?|any|the))? $`)
	httpOnly    = regexp.MustCompile(`(?i)\bhttp-?only\b`)
	// The part of a Location that the app chooses.
	chosenSegment = regexp.MustCompile(`/(?::\w+|[A-Z][A-Z0-9_]*|\d+|\[\w+\])(/|\?|$)`)
	// Words in capitals that are values of headers, not placeholders.
	headerWords = regexp.MustCompile(`^(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|DENY|SAMEORIGIN|HIT|MISS|STALE|BYPASS)$`)
	// A placeholder for the value of a parameter: "max-age=N".
	openValueOf = regexp.MustCompile(`=[A-Z][A-Z0-9_]*$`)
	localOrigin = regexp.MustCompile(`^https?://(?:localhost|127\.0\.0\.1|0\.0\.0\.0|app)(?::\d+)?(/|$)`)
)

// readHeaders reads the headers that a result names.
func (r *response) readHeaders(vars []string, result string) {
	plain := blankQuotes(result)
	add := func(at, end int, h namedHeader) {
		known := func(o namedHeader) bool { return o.name == h.name }
		h.absent = withoutName.MatchString(plain[:at])
		if !h.absent && (negated.MatchString(plain[:at]) || isMissing.MatchString(plain[end:])) || slices.ContainsFunc(r.headers, known) {
			return
		}
		r.headers = append(r.headers, h)
	}
	for _, m := range redirected.FindAllStringSubmatchIndex(plain, -1) {
		add(m[0], m[1], newHeader("location", plain[m[2]:m[3]], vars))
	}
	until := 0 // the end of the previous value, which may look like a header: "Max-Age=0"
	for _, m := range headerName.FindAllStringIndex(plain, -1) {
		if m[0] < until {
			continue
		}
		name := strings.ToLower(plain[m[0]:m[1]])
		v := headerValue.FindStringSubmatch(result[m[1]:])
		sep, value, end := v[1], v[2], m[1]
		switch {
		case strings.Contains(sep, ":"), strings.Contains(sep, "=") && usualHeader.MatchString(name):
			value += moreOfValue(name, result[m[1]+len(v[0]):])
			end += len(sep) + len(value)
		case !usualHeader.MatchString(name) && !strings.Contains(sep, "header"),
			strings.ContainsAny(plain[m[0]:m[0]+1], "lx") && !strings.Contains(sep, "header"):
			continue // "the location of the shop", "its x-coordinate"
		case strings.Contains(value, "/"):
			value += moreOfValue(name, result[m[1]+len(v[0]):])
		default:
			value = "" // "a Location header with …"
		}
		until = end
		add(m[0], end, newHeader(name, value, vars))
	}
	if httpOnly.MatchString(plain) && !slices.ContainsFunc(r.headers, func(h namedHeader) bool { return h.name == "set-cookie" }) {
		at := httpOnly.FindStringIndex(plain)
		add(at[0], at[1], newHeader("set-cookie", "=; HttpOnly", vars))
	}
}

// moreOfValue returns the part of a header's value after its first word: its parameters and, if it
// is a list, the other items.
func moreOfValue(name, rest string) string {
	more := headerParameters.FindString(rest)
	if listHeader.MatchString(name) {
		more = headerItems.FindString(rest)
		if strings.HasPrefix(rest[len(more):], ":") { // the last item is the next header
			more = more[:strings.LastIndexByte(more, ',')]
		}
	}
	return more
}

func newHeader(name, value string, vars []string) namedHeader {
	if value = strings.TrimRight(value, ".;:)"); strings.HasPrefix(value, `"`) {
		value = strings.Trim(value, `"`)
	}
	switch name {
	case "location":
		value = localOrigin.ReplaceAllString(value, "$1")
		for range strings.Count(value, "/") { // neighbours share a slash
			value = chosenSegment.ReplaceAllStringFunc(value, func(s string) string {
				m := chosenSegment.FindStringSubmatch(s)
				if name := strings.TrimLeft(strings.TrimSuffix(s, m[1]), "/"); name != "" && !strings.HasPrefix(name, "{") {
					return "/{" + strings.Trim(name, ":[]") + "}" + m[1]
				}
				return s
			})
		}
	case "set-cookie":
		_, attributes, _ := strings.Cut(value, ";")
		cookie, _, _ := strings.Cut(value, "=")
		value = strings.TrimSuffix(cookie+";"+attributes, ";")
	case "etag":
		value = ""
	}
	if capitals.MatchString(value+"A") && !headerWords.MatchString(value) && !slices.Contains(vars, value) {
		value = "{" + value + "}"
	}
	return namedHeader{name: name, value: written{value, vars}}
}

// isIn reports whether the response of x has the header, or lacks it if it must be absent.
func (h namedHeader) isIn(x Exchange, echoes []echo) bool {
	all, want := x.Header.Values(h.name), h.value.fill(echoes)
	if h.absent || want.text == "" || want.open() {
		return h.absent == (len(all) == 0)
	}
	return slices.ContainsFunc(all, func(value string) bool {
		switch {
		case h.name == "location":
			return want.isAddress(x.Target, value)
		case h.name == "set-cookie":
			cookie, attributes, _ := strings.Cut(want.text, ";")
			name, _, _ := strings.Cut(value, "=")
			return (cookie == "" || cookie == name || placeholder.MatchString(cookie)) && hasItems(attributes, ";", value)
		case listHeader.MatchString(h.name):
			return hasItems(want.text, ",", strings.Join(all, ","))
		case strings.Contains(want.text, ";"):
			first, parameters, _ := strings.Cut(want.text, ";")
			return begins(value, first) && hasItems(parameters, ";", value)
		}
		return begins(value, want.text)
	})
}

// hasItems reports whether a value has all items of want up to their placeholders, in any order.
func hasItems(want, sep, value string) bool {
	all := strings.Split(value, sep)
	for item := range strings.SplitSeq(want, sep) {
		item = strings.ReplaceAll(strings.TrimSpace(item), `"`, "")
		if item != "" && !slices.ContainsFunc(all, func(has string) bool {
			return begins(strings.ReplaceAll(strings.TrimSpace(has), `"`, ""), item)
		}) {
			return false
		}
	}
	return true
}

// begins reports whether a value begins with want up to its placeholder, regardless of case. Only
// parameters and further words may follow.
func begins(value, want string) bool {
	want = openValueOf.ReplaceAllString(want, "=…")
	open := openPart.FindStringIndex(want)
	if open != nil {
		want = want[:open[0]]
	}
	return len(value) >= len(want) && strings.EqualFold(value[:len(want)], want) &&
		(open != nil || len(value) == len(want) || strings.ContainsRune(" ;,", rune(value[len(want)])))
}

// isAddress reports whether a Location is the one of the contract, which may have a query that the
// contract does not name. target is the address of the request.
func (w written) isAddress(target, location string) bool {
	if base, err := url.Parse(target); err == nil && !localOrigin.MatchString(location) {
		if at, err := base.Parse(location); err == nil {
			location = at.String()
		}
	}
	location = localOrigin.ReplaceAllString(location, "$1")
	if !strings.Contains(w.text, "?") {
		location, _, _ = strings.Cut(location, "?")
		location, _, _ = strings.Cut(location, "#")
	}
	unescaped := func(s string) string {
		if plain, err := url.QueryUnescape(s); err == nil {
			return plain
		}
		return s
	}
	location = unescaped(location)
	parts := w.openParts().Split(unescaped(w.text), -1)
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	end := "$"
	if origin.MatchString(w.text) {
		end = "/?$"
	}
	return regexp.MustCompile(`(?s)^` + strings.Join(parts, `[^/?#]+`) + end).MatchString(location)
}

// missing describes a response that lacks the header, or has it although it must not.
func (h namedHeader) missing() string {
	if h.absent {
		return "with " + strings.TrimPrefix(h.String(), "no ")
	}
	return "without " + h.String()
}

// String returns the header and its value on one line.
func (h namedHeader) String() string {
	text := "header " + http.CanonicalHeaderKey(h.name)
	if h.absent {
		text = "no " + text
	}
	if h.value.open() {
		return text
	}
	return strings.TrimSpace(text + " " + strings.TrimPrefix(h.value.text, ";"))
}
