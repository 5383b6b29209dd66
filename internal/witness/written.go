package witness

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// written is a text of a contract. Comparisons are literal except for the parts that the contract
// leaves open.
type written struct {
	text string
	vars []string // words that mean any value, because the action has them without quotes
}

var (
	// The open parts of a text: <x>, {x} and ellipses.
	openPart = regexp.MustCompile(`<[^<>]*>|\{[^{}]*\}|…|\.\.\.`)
	angled   = regexp.MustCompile(`<[^<>]*>`)
	// A tag of HTML that cannot be a placeholder, and one without attributes.
	surelyTag = regexp.MustCompile(`(?i)^<(?:/[a-z]|!doctype|[brh]r>|[a-z][\w-]*(?:\s[^<>]*=|[^<>]*/>$))`)
	bareTag   = regexp.MustCompile(`<([A-Za-z][\w-]*)>`)
	// A word in capitals without quotes is a variable.
	bareCapital = regexp.MustCompile(`\b[A-Z][A-Z0-9_]*\b`)
	oneOf       = regexp.MustCompile(`^\w+(?:\|\w+)+$`)
	// A variable that the result explains: "C being 6 characters".
	explained = regexp.MustCompile(`\b([A-Z][A-Z0-9_]*) (?:being|is|=) `)
)

// noVars are words in capitals that are not variables.
var noVars = strings.Fields("GET HEAD POST PUT PATCH DELETE OPTIONS HTTP HTTPS JSON XML HTML CSV URL URI API UTF " +
	"ASCII OK TLS TCP I A")

// variables returns the variables of a contract.
func variables(action, result string) (all []string) {
	for _, word := range bareCapital.FindAllString(blankQuotes(action), -1) {
		if !slices.Contains(noVars, word) {
			all = append(all, word)
		}
	}
	for _, m := range explained.FindAllStringSubmatch(blankQuotes(result), -1) {
		all = append(all, m[1])
	}
	return all
}

// isTag reports whether a part of text in angle brackets is a tag of HTML, not a placeholder: it has
// attributes, or the text has its end tag.
func isTag(part, text string) bool {
	name, _, _ := strings.Cut(strings.Trim(part, "<>"), " ")
	return surelyTag.MatchString(part) || name != "" && strings.Contains(text, "</"+name+">")
}

// hasTag reports whether text has a tag of HTML.
func hasTag(text string) bool {
	return slices.ContainsFunc(angled.FindAllString(text, -1), func(part string) bool { return isTag(part, text) })
}

// openParts returns a pattern for the open parts of the text.
func (w written) openParts() *regexp.Regexp {
	open := openPart.String()
	if hasTag(w.text) {
		_, open, _ = strings.Cut(open, "|")
		for _, part := range angled.FindAllString(w.text, -1) {
			if !isTag(part, w.text) {
				open += "|" + regexp.QuoteMeta(part)
			}
		}
	}
	for _, word := range w.vars {
		open += `|\b` + word + `\b`
	}
	return regexp.MustCompile(open)
}

// pattern returns a pattern for the text, nil if it has no open parts. A tag without attributes may
// have some.
func (w written) pattern() *regexp.Regexp {
	if oneOf.MatchString(w.text) {
		return regexp.MustCompile(`(?:` + w.text + `)`)
	}
	parts, tags := w.openParts().Split(w.text, -1), hasTag(w.text)
	if len(parts) == 1 && !tags {
		return nil
	}
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
		if tags {
			parts[i] = bareTag.ReplaceAllString(parts[i], `<$1(?:\s[^<>]*)?>`)
		}
	}
	return regexp.MustCompile(`(?s)` + strings.Join(parts, `.*?`))
}

// open reports whether the text is open as a whole.
func (w written) open() bool {
	p := w.pattern()
	return p != nil && p.MatchString("")
}

// equals reports whether value equals the text.
func (w written) equals(value string) bool {
	p := w.pattern()
	return value == w.text || p != nil && regexp.MustCompile(`^(?:`+p.String()+`)$`).MatchString(value)
}

// isIn reports whether body contains the text, not as a part of a longer word or number.
func (w written) isIn(body string) bool {
	p := w.pattern()
	if p == nil {
		p = regexp.MustCompile(regexp.QuoteMeta(w.text))
	}
	for from := 0; from <= len(body); {
		m := p.FindStringIndex(body[from:])
		if m == nil {
			return false
		}
		start, end := from+m[0], from+m[1]
		if !inWord(body, start) && !inWord(body, end) {
			return true
		}
		_, n := utf8.DecodeRuneInString(body[start:])
		from = start + max(1, n)
	}
	return false
}

// removeFrom removes the text from body.
func (w written) removeFrom(body string) string {
	if p := w.pattern(); p != nil {
		return p.ReplaceAllString(body, "")
	}
	return strings.ReplaceAll(body, w.text, "")
}

// String returns the text in quotes, with ellipses for its open parts.
func (w written) String() string {
	return fmt.Sprintf("%q", w.openParts().ReplaceAllString(w.text, "…"))
}

// keyAndValue matches a field that is written as text: "total: 1".
var keyAndValue = regexp.MustCompile(`^"?([\w$.-]+)"?\s*[:=]\s*(\S.*)$`)

// field reports whether doc has the field that the text names.
func (w written) field(doc any) bool {
	m := keyAndValue.FindStringSubmatch(w.text)
	if m == nil {
		return false
	}
	r := shapeReader{rest: m[2]}
	value, ok := r.value()
	if !ok || r.rest != "" || value.any {
		value = shape{of: m[2]}
	}
	return hasField(doc, m[1], value)
}

// hasField reports whether doc has the field at any depth.
func hasField(doc any, key string, value shape) bool {
	switch doc := doc.(type) {
	case map[string]any:
		for k, v := range doc {
			if k == key && value.fits(v, nil, false) || hasField(v, key, value) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(doc, func(v any) bool { return hasField(v, key, value) })
	}
	return false
}

// digits matches a whole number. Large ones differ in digits that a float64 does not have.
var digits = regexp.MustCompile(`^-?\d+$`)

// equalNumbers reports whether want and has are equal numbers.
func equalNumbers(want, has any) bool {
	a, ok := want.(json.Number)
	b, is := has.(json.Number)
	if !ok || !is {
		return false
	}
	if digits.MatchString(a.String()) && digits.MatchString(b.String()) {
		return a == b
	}
	x, err := a.Float64()
	y, failed := b.Float64()
	return err == nil && failed == nil && x == y
}
