package witness

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// echo is a value of a request that its response repeats. The contract has a placeholder or a text
// in its place.
type echo struct {
	written string // the text, or the name of the placeholder
	open    bool   // it is a placeholder
	key     string // of the value in the request, "" for a part of the path
	sent    any    // a text for a part of path or query
}

// placeholderText matches a text that is a placeholder as a whole: N, {id}, <id>, :id, id.
var placeholderText = regexp.MustCompile(`^(?:[A-Za-z]\w*|:[A-Za-z]\w*|\{[^{}…]+\}|<[^<>…]+>)$`)

// placeholderName returns the name of a placeholder without its marks, "" if text is not one.
func placeholderName(text string) string {
	if !placeholderText.MatchString(text) {
		return ""
	}
	return strings.Trim(text, "{}<>:")
}

// echoes returns the values that the request of x has in place of placeholders and texts of the
// contract. It leaves out placeholders with several values.
func (c Claim) echoes(x Exchange) (all []echo) {
	r, _, ok := c.request(x)
	if !ok || c.program {
		return nil
	}
	all = r.echoes(x)
	return slices.DeleteFunc(slices.Clone(all), func(e echo) bool {
		return e.open && slices.ContainsFunc(all, func(o echo) bool {
			return o.open && o.written == e.written && fmt.Sprint(o.sent) != fmt.Sprint(e.sent)
		})
	})
}

// placeholders returns the names of the placeholders in path, query and body.
func (r request) placeholders() (all []string) {
	for _, s := range r.segments {
		all = append(all, placeholderName(s.text))
	}
	for _, want := range r.query {
		all = append(all, placeholderName(want[0]))
	}
	if r.body != nil {
		r.body.leaves("", func(_ string, leaf *shape) { all = append(all, leaf.name) })
	}
	return slices.DeleteFunc(all, func(name string) bool { return name == "" })
}

// echoes returns the values of x in place of the placeholders of the path, the query and the body.
func (r request) echoes(x Exchange) (all []echo) {
	add := func(key, text, sent string) {
		if name := placeholderName(text); name != "" && isOpen(text) && !slices.Contains(someWords, text) {
			all = append(all, echo{written: name, open: true, key: key, sent: sent})
		}
	}
	raw, _, _ := strings.Cut(origin.ReplaceAllString(x.Target, ""), "?")
	for i, part := range strings.Split(plainPath(raw), "/") {
		if i < len(r.segments) && !manySegments.MatchString(r.segments[i].text) {
			add("", r.segments[i].text, part)
		}
	}
	values, _, _ := r.hasPath(x)
	for key, want := range r.query {
		if has := values[key]; len(has) > 0 {
			add(key, want[0], has[0])
		}
	}
	if doc, ok := decode(x.Sent.Begins); ok && r.body != nil {
		all = append(all, r.body.echoes(doc)...)
	}
	return all
}

// binds reports whether a value of the response must equal e. The app chooses an id, unless the path
// or the same key has it. A number below another key may be another number.
func (e echo) binds(v shape) bool {
	text, _ := e.sent.(string)
	_, isNumber := decodeNumber(e.sent)
	switch {
	case !e.open || e.written != v.name:
		return false
	case e.key == v.key || e.key == "" && ownID.MatchString(v.key):
		return true
	}
	return !ownID.MatchString(v.key) && !isNumber && text != ""
}

// decodeNumber returns the number that a value or its text is.
func decodeNumber(value any) (n json.Number, ok bool) {
	if text, isText := value.(string); isText {
		value, _ = decode([]byte(text))
	}
	n, ok = value.(json.Number)
	return n, ok
}

// equals reports whether a value of the response equals e. A part of path or query equals a number
// with the same digits.
func (e echo) equals(value any) bool {
	if n, ok := value.(json.Number); ok && e.sent == n.String() {
		return true
	}
	return equalNumbers(e.sent, value) || reflect.DeepEqual(e.sent, value)
}

// fill returns the text that the contract expects after a request with these echoes.
func (w written) fill(echoes []echo) written {
	for _, e := range echoes {
		sent, ok := e.sent.(string)
		if n, isNumber := e.sent.(json.Number); isNumber {
			sent, ok = n.String(), true
		}
		switch {
		case !ok:
		case e.open:
			w = w.bind(e.written, sent)
		default:
			w.text = strings.ReplaceAll(w.text, e.written, sent)
		}
	}
	return w
}

// bind puts a value for a placeholder.
func (w written) bind(name, value string) written {
	for _, marked := range []string{"{" + name + "}", "<" + name + ">"} {
		w.text = strings.ReplaceAll(w.text, marked, value)
	}
	if i := slices.Index(w.vars, name); i >= 0 {
		w.vars = slices.Delete(slices.Clone(w.vars), i, i+1)
		w.text = regexp.MustCompile(`\b`+name+`\b`).ReplaceAllLiteralString(w.text, value)
	}
	return w
}
