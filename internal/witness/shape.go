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
	any    bool     // whatever it is
	of     any      // a string, json.Number, bool or nil
	vars   []string // of a string
	echoed bool     // a string that the answer repeats: another may be sent
	fields []field  // of an object, when not nil
	items  []shape  // of a list, when not nil; none and no ellipsis is an empty list
	more   bool     // an ellipsis stands in it
}

type field struct {
	key  string
	bare bool // without quotes and value
	shape
}

// findDocument finds the first document that stands alone in a text: not in a path, and complete.
// start is -1 where there is none; body is nil where it cannot be read. In a request an empty
// document is one, and keys alone are words.
func findDocument(text string, request bool) (body *shape, start, end int) {
	for i, c := range text {
		inQuotes := request && i > 0 && text[i-1] == '\'' // as shells have it
		if c != '{' && c != '[' || i > 0 && !strings.ContainsRune(" :(", rune(text[i-1])) && !inQuotes {
			continue
		}
		n := balanced(text[i:])
		if n == 0 {
			break
		}
		r := shapeReader{rest: text[i : i+n]}
		v, ok := r.value()
		empty := request && (v.fields != nil && len(v.fields) == 0 || v.items != nil && len(v.items) == 0) && !v.more
		if ok && r.rest == "" && (empty || !v.wording(text[:i])) {
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
	words := len(v.items) > 0 && !slices.ContainsFunc(v.items, func(i shape) bool { return !i.any || i.of != nil })
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
	// {x} in the place of a field's value.
	openValue = regexp.MustCompile(`^\{[\w .-]+\}`)
)

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
		return shape{of: s}, ok
	}
	word := r.match(bareWord)
	if v.of, ok = decode([]byte(word)); !ok {
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
		if f.bare = false; r.match(openValue) != "" {
			return f, true
		}
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

var (
	// Keys whose values the app chooses: a name, and a time.
	ownID   = regexp.MustCompile(`^(?:id|.*_id|.*I[dD]|uuid|token|.*[_-]token|.*Token)$`)
	ownTime = regexp.MustCompile(`^(?:.*At|.*_at|.*Time|timestamp|date|created|updated|modified|expires)$`)
	// Values that the app chooses, by their form: a time, a UUID, a token, and an address of its own.
	ownText = regexp.MustCompile(`^(?:\d{4}-\d\d-\d\d[T ]\d\d:.*|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9a-f]{16,}|` +
		`eyJ[\w-]+\.[\w.-]+|https?://(?:localhost|127\.0\.0\.1|app)(?::\d+)?/.*)$`)
	date     = regexp.MustCompile(`^\d{4}-\d\d-\d\d$`)
	capitals = regexp.MustCompile(`^[A-Z][A-Z0-9_]+$`)
)

// types are what people write for a value of that type, where all values are such.
var types = strings.Fields("string number integer int float double boolean bool object array datetime timestamp uuid text date email url")

// leaves calls do with each value that is no object and no list, and its key, "" for none.
func (v *shape) leaves(key string, do func(key string, v *shape)) {
	for i := range v.fields {
		v.fields[i].leaves(v.fields[i].key, do)
	}
	for i := range v.items {
		v.items[i].leaves(key, do)
	}
	if v.fields == nil && v.items == nil {
		do(key, v)
	}
}

// opened leaves open what the app chooses: values by key and form, ids that the path of the action
// has, and types in the place of values.
func (v *shape) opened(vars, ids []string) *shape {
	if v == nil {
		return nil
	}
	schema := true
	v.leaves("", func(_ string, leaf *shape) {
		text, ok := leaf.of.(string)
		schema = schema && (leaf.any || ok && slices.Contains(types, text))
	})
	v.leaves("", func(key string, leaf *shape) {
		switch of := leaf.of.(type) {
		case string:
			leaf.vars = vars
			leaf.any = leaf.any || schema || (written{of, vars}).open() || ownText.MatchString(of) || slices.Contains(ids, of) ||
				ownID.MatchString(key) && !capitals.MatchString(of) || ownTime.MatchString(key) && date.MatchString(of)
		case json.Number:
			long := len(of.String()) >= 10
			leaf.any = leaf.any || slices.Contains(ids, of.String()) || ownID.MatchString(key) || ownTime.MatchString(key) && long
		}
	})
	return v
}

// echo marks the texts of a request that its answer has, and in which an honest test may send
// others.
func (v *shape) echo(answer func(text string) bool) {
	if v != nil {
		v.leaves("", func(_ string, leaf *shape) {
			text, ok := leaf.of.(string)
			leaf.echoed = ok && !leaf.any && len(text) > 1 && answer(text)
		})
	}
}

// echoes are what a document has in the place of the texts that an answer repeats.
func (v shape) echoes(doc any) (all []echo) {
	if text, ok := doc.(string); ok && v.echoed {
		return []echo{{v.of.(string), text}}
	}
	object, _ := doc.(map[string]any)
	for _, f := range v.fields {
		all = append(all, f.echoes(object[f.key])...)
	}
	list, _ := doc.([]any)
	for i, item := range v.items {
		if i < len(list) {
			all = append(all, item.echoes(list[i])...)
		}
	}
	return all
}

// is says whether a document is the one that was written, with nothing besides.
func (v shape) is(doc any) bool {
	switch {
	case v.any:
		return true
	case v.fields != nil:
		object, ok := doc.(map[string]any)
		named := map[string]bool{}
		for _, f := range v.fields {
			value, has := object[f.key]
			if named[f.key] = true; !has || !f.is(value) {
				return false
			}
		}
		return ok && (v.more || len(named) == len(object))
	case v.items != nil:
		list, ok := doc.([]any)
		if !ok || len(list) < len(v.items) || len(list) > len(v.items) && !v.more {
			return false
		}
		for i, item := range v.items {
			if !item.is(list[i]) {
				return false
			}
		}
		return true
	case v.echoed:
		_, ok := doc.(string)
		return ok
	}
	return v.same(doc, nil)
}

// same compares a value that is no object and no list.
func (v shape) same(doc any, echoes []echo) bool {
	want, ok := v.of.(string)
	has, text := doc.(string)
	if ok && text {
		return (written{want, v.vars}).with(echoes).is(has)
	}
	return v.of == doc || number(v.of, doc)
}

// fits says whether a document has what the value names; more keys and items may be there.
func (v shape) fits(doc any, echoes []echo) bool {
	switch {
	case v.any:
		return true
	case v.fields != nil:
		object, ok := doc.(map[string]any)
		return ok && !slices.ContainsFunc(v.fields, func(f field) bool {
			has, ok := object[f.key]
			return !ok || !f.fits(has, echoes)
		})
	case v.items != nil:
		list, ok := doc.([]any)
		return ok && (len(v.items) > 0 || v.more || len(list) == 0) &&
			!slices.ContainsFunc(v.items, func(item shape) bool {
				return !slices.ContainsFunc(list, func(has any) bool { return item.fits(has, echoes) })
			})
	}
	return v.same(doc, echoes)
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
