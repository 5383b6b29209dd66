package witness

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// written is a text as a contract has it. It is compared as it is, but for the parts that the
// contract leaves open.
type written struct {
	text string
	vars []string // words in it that stand for any value, since the action has them without quotes
}

var (
	// What is open in a text: <x>, {x} and an ellipsis.
	openPart = regexp.MustCompile(`<[^<>]*>|\{[^{}]*\}|…|\.\.\.`)
	// A bare word in capitals stands for a value where no quotes are around it.
	bareCapital = regexp.MustCompile(`\b[A-Z][A-Z0-9_]*\b`)
	oneOf       = regexp.MustCompile(`^\w+(?:\|\w+)+$`)
	// What is explained in a result: "C being 6 characters".
	explained = regexp.MustCompile(`\b([A-Z][A-Z0-9_]*) (?:being|is|=) `)
)

// noVars are words in capitals that stand for themselves.
var noVars = strings.Fields("GET HEAD POST PUT PATCH DELETE OPTIONS HTTP HTTPS JSON XML HTML CSV URL URI API UTF ASCII OK TLS TCP I A")

// variables are the words that stand for any value in the texts of a contract.
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

// openParts finds what is open in the text.
func (w written) openParts() *regexp.Regexp {
	open := openPart.String()
	for _, word := range w.vars {
		open += `|\b` + word + `\b`
	}
	return regexp.MustCompile(open)
}

// pattern matches the text within another one, nil where nothing of it is open.
func (w written) pattern() *regexp.Regexp {
	if oneOf.MatchString(w.text) {
		return regexp.MustCompile(`(?:` + w.text + `)`)
	}
	parts := w.openParts().Split(w.text, -1)
	if len(parts) == 1 {
		return nil
	}
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile(`(?s)` + strings.Join(parts, `.*?`))
}

// open says that nothing of the text is compared.
func (w written) open() bool {
	p := w.pattern()
	return p != nil && p.MatchString("")
}

// is says whether a value is the text.
func (w written) is(value string) bool {
	p := w.pattern()
	return value == w.text || p != nil && regexp.MustCompile(`^(?:`+p.String()+`)$`).MatchString(value)
}

// in says whether the text stands in another one.
func (w written) in(body string) bool {
	p := w.pattern()
	return strings.Contains(body, w.text) || p != nil && p.MatchString(body)
}

// out takes the text out of another one.
func (w written) out(body string) string {
	if p := w.pattern(); p != nil {
		return p.ReplaceAllString(body, "")
	}
	return strings.ReplaceAll(body, w.text, "")
}

// String is the text in quotes, with an ellipsis for what is open.
func (w written) String() string {
	return fmt.Sprintf("%q", w.openParts().ReplaceAllString(w.text, "…"))
}

// echo is a text of the contract's request that its answer repeats, and what was sent in its place.
type echo struct{ written, sent string }

// with is the text after such a request.
func (w written) with(echoes []echo) written {
	for _, e := range echoes {
		w.text = strings.ReplaceAll(w.text, e.written, e.sent)
	}
	return w
}

// keyAndValue is a field as texts have it: "total: 1".
var keyAndValue = regexp.MustCompile(`^"?([\w$.-]+)"?\s*[:=]\s*(\S.*)$`)

// field says whether a document has the field that the text tells.
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
	return has(doc, m[1], value)
}

// has says whether a document has a field somewhere.
func has(doc any, key string, value shape) bool {
	switch doc := doc.(type) {
	case map[string]any:
		for k, v := range doc {
			if k == key && value.fits(v, nil) || has(v, key, value) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(doc, func(v any) bool { return has(v, key, value) })
	}
	return false
}

// number says whether two numbers are the same.
func number(want, has any) bool {
	a, ok := want.(json.Number)
	b, is := has.(json.Number)
	if !ok || !is {
		return false
	}
	x, err := a.Float64()
	y, failed := b.Float64()
	return err == nil && failed == nil && x == y
}
