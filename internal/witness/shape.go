package witness

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// shape is a JSON document as people write it into contracts: keys with or without
// quotes, `{id, text}` for keys alone, "…" for what is not told.
type shape struct {
	any    bool    // whatever it is
	is     any     // a string, json.Number, bool or nil
	fields []field // of an object, when not nil
	items  []shape // of a list, when not nil; none and no ellipsis is an empty list
	more   bool    // an ellipsis stands in it
}

type field struct {
	key  string
	bare bool // without quotes and value
	shape
}

// findJSON finds the first document that stands alone in a text: not in a path, and
// complete. start is -1 where there is none; body is nil where it cannot be read.
func findJSON(text string) (body *shape, start, end int) {
	for i, c := range text {
		if c != '{' && c != '[' || i > 0 && !strings.ContainsRune(" :(", rune(text[i-1])) {
			continue
		}
		n := balanced(text[i:])
		if n == 0 {
			break
		}
		r := shapeReader{rest: text[i : i+n]}
		if v, ok := r.value(); ok && r.rest == "" && !v.wording(text[:i]) {
			body = &v
		}
		return body, i, i + n
	}
	return nil, -1, -1
}

// beforeBare is what stands before a document whose keys are all that is named.
var beforeBare = regexp.MustCompile(`(?i)(?:^|\b[1-5]\d\d(?: ok| created)?:?|\b(?:body|json|object|with|list|array)) *$`)

// wording says that it is no document: "Hello {name}", "[a-z]{6}", "[see below]", or
// one of which nothing is named, "{…}".
func (v shape) wording(before string) bool {
	bare := !slices.ContainsFunc(v.fields, func(f field) bool { return !f.bare })
	words := len(v.items) > 0 && !slices.ContainsFunc(v.items, func(i shape) bool { return !i.any || i.is != nil })
	return v.fields != nil && (len(v.fields) == 0 || bare && !beforeBare.MatchString(before)) || words && !v.more
}

// balanced is the length of a document up to its last bracket, 0 when that is missing.
func balanced(text string) int {
	depth, inText := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case inText:
		case c == '{', c == '[':
			depth++
		case c == '}', c == ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}

type shapeReader struct{ rest string }

func (r *shapeReader) take(prefix string) bool {
	rest, ok := strings.CutPrefix(strings.TrimSpace(r.rest), prefix)
	if ok {
		r.rest = strings.TrimSpace(rest)
	}
	return ok
}

var (
	jsonText = regexp.MustCompile(`^"(?:[^"\\]|\\.)*"`)
	bareKey  = regexp.MustCompile(`^[\w$.-]+`)
	bareWord = regexp.MustCompile(`^[^,{}\[\]"]+`)
	ellipsis = regexp.MustCompile(`^(?:…|\.\.\.)`)
	dateTime = regexp.MustCompile(`^\d{4}-\d\d-\d\d[T ]\d\d:`)
)

// types are what people write for a value of that type.
var types = strings.Fields("text int integer float boolean bool object array date datetime timestamp email url")

func (r *shapeReader) match(pattern *regexp.Regexp) string {
	m := pattern.FindString(r.rest)
	r.rest = strings.TrimSpace(r.rest[len(m):])
	return strings.TrimSpace(m)
}

func (r *shapeReader) value() (v shape, ok bool) {
	switch {
	case r.take("{"):
		v.fields = []field{}
		ok = r.list(&v, "}", func() bool {
			f, ok := r.field()
			v.fields = append(v.fields, f)
			return ok
		})
		return v, ok
	case r.take("["):
		v.items = []shape{}
		ok = r.list(&v, "]", func() bool {
			item, ok := r.value()
			v.items = append(v.items, item)
			return ok
		})
		return v, ok
	}
	if text := r.match(jsonText); text != "" {
		var s string
		ok = json.Unmarshal([]byte(text), &s) == nil
		return shape{is: s, any: isOpen(s) || slices.Contains(types, s) || dateTime.MatchString(s)}, ok
	}
	word := r.match(bareWord)
	if v.is, ok = decode([]byte(word)); !ok {
		v = shape{any: true} // a word for a value: N, <id>, text
	}
	return v, word != ""
}

// field reads a key, and its value where it has one.
func (r *shapeReader) field() (f field, ok bool) {
	text := r.match(jsonText)
	f = field{key: strings.Trim(text, `"`), bare: text == "", shape: shape{any: true}}
	if f.bare {
		f.key = r.match(bareKey)
	}
	if ok = f.key != ""; ok && r.take(":") {
		f.bare = false
		f.shape, ok = r.value()
	}
	return f, ok
}

// list reads what stands between commas up to the end.
func (r *shapeReader) list(v *shape, end string, one func() bool) bool {
	for !r.take(end) {
		if r.match(ellipsis) != "" {
			v.more = true
		} else if !one() {
			return false
		}
		if !r.take(",") && !strings.HasPrefix(r.rest, end) {
			return false
		}
	}
	return true
}

// Keys whose values the app chooses.
var chosen = regexp.MustCompile(`^(?:id|.*_id|.*I[dD]|uuid|token|.*At|.*_at|created.*|updated.*)$`)

// with is the value where the action has the same texts: what was sent may come
// again, and a test may send another.
func (v *shape) with(action string) *shape {
	if v == nil {
		return nil
	}
	for i := range v.fields {
		f := &v.fields[i]
		f.shape.with(action)
		f.any = f.any || f.fields == nil && f.items == nil && chosen.MatchString(f.key)
	}
	for i := range v.items {
		v.items[i].with(action)
	}
	switch is := v.is.(type) {
	case string:
		v.any = v.any || is != "" && echoes(action, is)
	case json.Number:
		v.any = v.any || strings.Contains(action, is.String())
	}
	return v
}

// echoes says that a text is in the action, or has in it what is quoted there.
func echoes(action, text string) bool {
	return strings.Contains(action, text) || slices.ContainsFunc(quoted.FindAllString(action, -1), func(q string) bool {
		return len(q) > 4 && strings.Contains(text, q[1:len(q)-1])
	})
}

// fits says whether a document has what the value names; more keys and items may be there.
func (v shape) fits(doc any) bool {
	switch {
	case v.any:
		return true
	case v.fields != nil:
		object, ok := doc.(map[string]any)
		return ok && !slices.ContainsFunc(v.fields, func(f field) bool {
			has, ok := object[f.key]
			return !ok || !f.fits(has)
		})
	case v.items != nil:
		list, ok := doc.([]any)
		return ok && (len(v.items) > 0 || v.more || len(list) == 0) &&
			!slices.ContainsFunc(v.items, func(item shape) bool { return !slices.ContainsFunc(list, item.fits) })
	}
	if want, ok := v.is.(json.Number); ok {
		has, ok := doc.(json.Number)
		a, _ := want.Float64()
		b, err := has.Float64()
		return ok && err == nil && a == b
	}
	return v.is == doc
}

// without is the document with what the value names taken out of it.
func (v shape) without(doc any) any {
	object, ok := doc.(map[string]any)
	switch {
	case !ok && v.items != nil && len(v.items) == 0 && !v.more:
		return []any{map[string]any{}} // "[]" says that nothing is there
	case !ok:
		return map[string]any{}
	}
	for _, f := range v.fields {
		delete(object, f.key)
	}
	return object
}
