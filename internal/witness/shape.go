package witness

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// shape is a JSON document in the notation of contracts: keys with or without quotes, `{id, text}`
// for keys without values, "…" for more keys or items.
type shape struct {
	any    bool     // any value
	name   string   // placeholder that stands for the value: equal names mean equal values
	key    string   // of the object that has the value
	typed  string   // name of the type of an open value, "" for any
	of     any      // a string, json.Number, bool or nil
	vars   []string // variables of a string
	echoed bool     // a string that the response repeats: tests may send another
	fields []field  // fields of an object, nil for other types
	items  []shape  // items of a list, nil for other types
	more   bool     // the object or list contains an ellipsis
	mixed  bool     // the items of the list may be in any order
}

type field struct {
	key  string
	bare bool // a key without quotes and value
	shape
}

// findDocument finds the first complete document in text, except in paths and in a quoted text that
// has other words ("Items [3]"). start is -1 without one. body is nil if the document cannot
// be parsed or is prose in brackets. In a request, an empty document counts and bare keys are
// prose.
func findDocument(text string, request bool) (body *shape, start, end int) {
	var quotes [][]int
	if !request {
		quotes = quoted.FindAllStringIndex(text, -1)
	}
	for i, c := range text {
		inQuotes := request && i > 0 && text[i-1] == '\'' // a shell command
		if c != '{' && c != '[' || i > 0 && !strings.ContainsRune(" :(", rune(text[i-1])) && !inQuotes {
			continue
		}
		n := balanced(text[i:])
		if n == 0 {
			break
		}
		if text[i:i+n] == checkbox || slices.ContainsFunc(quotes, func(at []int) bool { return at[0] < i && i < at[1] }) {
			continue
		}
		r := shapeReader{rest: text[i : i+n]}
		v, ok := r.value()
		empty := request && v.items != nil && len(v.items) == 0 && !v.more
		if ok && r.rest == "" && (empty || !v.wording(text[:i])) {
			body = &v
			if listOf.MatchString(text[:i]) {
				body = &shape{items: []shape{v}, more: true}
			}
		}
		return body, i, i + n
	}
	return nil, -1, -1
}

// checkbox is an open item of a list in Markdown, not a document.
const checkbox = "[ ]"

// isDocument reports whether text is a whole document.
func isDocument(text string) bool {
	text = strings.TrimSpace(text)
	return strings.ContainsAny(text[:min(len(text), 1)], "{[") && balanced(text) == len(text)
}

// listOf matches the text before a document that describes the items of a list.
var listOf = regexp.MustCompile(`(?i)\b(?:array|list) (?:of|with)(?: objects?)?:? *$`)

// beforeBare is the text before a document of bare keys.
var beforeBare = regexp.MustCompile(`(?i)(?:^|\b[1-5]\d\d(?: ok| created)?:?|\b(?:body|json|object|with|list|array|of)) *$`)

// wording reports whether the brackets contain prose, not a document ("Hello {name}", "[a-z]{6}",
// "[see below]"), or a document that names nothing ("{…}"). before is the text before the brackets.
func (v shape) wording(before string) bool {
	bare := !slices.ContainsFunc(v.fields, func(f field) bool { return !f.bare })
	words := len(v.items) > 0 && !slices.ContainsFunc(v.items, func(i shape) bool { return !i.any || i.of != nil })
	return v.fields != nil && (len(v.fields) == 0 && v.more || len(v.fields) > 0 && bare && !beforeBare.MatchString(before)) || words && !v.more
}

// balanced returns the length of the document at the start of text, 0 if its last bracket is
// missing.
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

func (r *shapeReader) accept(prefix string) bool {
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
	// {x} as the value of a field means any value.
	openValue = regexp.MustCompile(`^\{[\w .-]+\}`)
)

func (r *shapeReader) match(pattern *regexp.Regexp) string {
	m := pattern.FindString(r.rest)
	r.rest = strings.TrimSpace(r.rest[len(m):])
	return strings.TrimSpace(m)
}

func (r *shapeReader) value() (v shape, ok bool) {
	switch {
	case r.accept("{"):
		v.fields = []field{}
		ok = r.list(&v, "}", func() bool {
			f, ok := r.field()
			v.fields = append(v.fields, f)
			return ok
		})
		return v, ok
	case r.accept("["):
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
		v = shape{any: true, name: placeholderName(word), typed: typeNames[word]} // N, <id>, text
		if r.accept("[]") {                                                       // string[]
			v = shape{items: []shape{v}, more: true}
		}
	}
	return v, word != ""
}

// field reads a key and its value, if any.
func (r *shapeReader) field() (f field, ok bool) {
	text := r.match(jsonText)
	f = field{key: strings.Trim(text, `"`), bare: text == "", shape: shape{any: true}}
	if f.bare {
		f.key = r.match(bareKey)
	}
	if ok = f.key != ""; ok && r.accept(":") {
		f.bare = false
		if name := r.match(openValue); name != "" {
			f.name = placeholderName(name)
			return f, true
		}
		f.shape, ok = r.value()
	}
	return f, ok
}

// list calls one for each comma-separated item up to end.
func (r *shapeReader) list(v *shape, end string, one func() bool) bool {
	for !r.accept(end) {
		if r.match(ellipsis) != "" {
			v.more = true
		} else if !one() {
			return false
		}
		if !r.accept(",") && !strings.HasPrefix(r.rest, end) {
			return false
		}
	}
	return true
}

var (
	// Keys of ids and times, whose values the app chooses.
	ownID   = regexp.MustCompile(`^(?:id|.*_id|.*I[dD]|uuid|token|.*[_-]token|.*Token)$`)
	ownTime = regexp.MustCompile(`^(?:.*At|.*_at|.*Time|timestamp|date|created|updated|modified|expires)$`)
	// Values that the app chooses: times, UUIDs, tokens and URLs of the app.
	ownText = regexp.MustCompile(`^(?:\d{4}-\d\d-\d\d[T ]\d\d:.*|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9a-f]{16,}|` +
		`eyJ[\w-]+\.[\w.-]+|https?://(?:localhost|127\.0\.0\.1|app)(?::\d+)?/.*)$`)
	date     = regexp.MustCompile(`^\d{4}-\d\d-\d\d$`)
	capitals = regexp.MustCompile(`^[A-Z][A-Z0-9_]+$`)
)

// typeNames has the JSON type of each name of a type. In a document with only such names, they mean
// any value of the type.
var typeNames = map[string]string{
	"string": "string", "text": "string", "uuid": "string", "email": "string", "url": "string",
	"number": "number", "integer": "number", "int": "number", "float": "number", "double": "number",
	"boolean": "boolean", "bool": "boolean", "object": "object", "array": "array",
	"date": "", "datetime": "", "timestamp": "",
}

// hasType reports whether doc has the JSON type of the shape.
func (v shape) hasType(doc any) (ok bool) {
	switch v.typed {
	case "string":
		_, ok = doc.(string)
	case "number":
		_, ok = doc.(json.Number)
	case "boolean":
		_, ok = doc.(bool)
	case "object":
		_, ok = doc.(map[string]any)
	case "array":
		_, ok = doc.([]any)
	default:
		return true
	}
	return ok
}

// leaves calls do for each value that is neither an object nor a list, with its key or "".
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

// opened marks the values that the app chooses as open: by key, by format, ids of the action's
// path, and names of types.
func (v *shape) opened(vars, ids []string) *shape {
	if v == nil {
		return nil
	}
	schema := true
	v.leaves("", func(_ string, leaf *shape) {
		text, _ := leaf.of.(string)
		_, ok := typeNames[text]
		schema = schema && (leaf.any || ok)
	})
	v.leaves("", func(key string, leaf *shape) {
		leaf.key = key
		switch of := leaf.of.(type) {
		case string:
			if schema {
				leaf.typed = typeNames[of]
			}
			leaf.vars = vars
			if (written{of, vars}).open() {
				leaf.name = placeholderName(of)
			}
			leaf.any = leaf.any || schema || (written{of, vars}).open() || ownText.MatchString(of) || slices.Contains(ids, of) ||
				ownID.MatchString(key) && !capitals.MatchString(of) || ownTime.MatchString(key) && date.MatchString(of)
		case json.Number:
			long := len(of.String()) >= 10
			leaf.any = leaf.any || slices.Contains(ids, of.String()) || ownID.MatchString(key) || ownTime.MatchString(key) &&
				long
		}
	})
	return v
}

// unordered lets all lists of the document have their items in any order, if any is set.
func (v *shape) unordered(any bool) *shape {
	if v != nil && any {
		v.mixed = true
		for i := range v.fields {
			v.fields[i].unordered(true)
		}
		for i := range v.items {
			v.items[i].unordered(true)
		}
	}
	return v
}

// echo sets echoed for the strings of a request that its response repeats. Tests may send other
// strings there.
func (v *shape) echo(answer func(text string) bool) {
	if v != nil {
		v.leaves("", func(_ string, leaf *shape) {
			text, ok := leaf.of.(string)
			leaf.echoed = ok && !leaf.any && len(text) > 1 && answer(text)
		})
	}
}

// echoes returns the values that doc has instead of placeholders and echoed strings.
func (v shape) echoes(doc any) (all []echo) {
	switch text, ok := doc.(string); {
	case ok && v.echoed:
		return []echo{{written: v.of.(string), sent: text}}
	case v.any && v.name != "":
		return []echo{{written: v.name, open: true, key: v.key, sent: doc}}
	}
	object, _ := doc.(map[string]any)
	for _, f := range v.fields {
		if value, has := object[f.key]; has {
			all = append(all, f.echoes(value)...)
		}
	}
	list, _ := doc.([]any)
	for i, item := range v.items {
		if i < len(list) {
			all = append(all, item.echoes(list[i])...)
		}
	}
	return all
}

// scalarFits compares a value that is neither an object nor a list.
func (v shape) scalarFits(doc any, echoes []echo) bool {
	want, ok := v.of.(string)
	has, text := doc.(string)
	if ok && text {
		return (written{want, v.vars}).fill(echoes).equals(has)
	}
	return v.of == doc || equalNumbers(v.of, doc)
}

// fits reports whether doc contains the shape. Unless exact is set, doc may have more keys, and more
// items between objects and before an ellipsis.
func (v shape) fits(doc any, echoes []echo, exact bool) bool {
	object, isObject := doc.(map[string]any)
	_, isText := doc.(string)
	switch {
	case v.any:
		return v.hasType(doc) &&
			!slices.ContainsFunc(echoes, func(e echo) bool { return e.binds(v) && !e.equals(doc) })
	case v.fields != nil:
		unnamed := maps.Clone(object)
		for _, f := range v.fields {
			value, has := object[f.key]
			if delete(unnamed, f.key); !has || !f.fits(value, echoes, exact) {
				return false
			}
		}
		return isObject && (!exact && len(v.fields) > 0 || v.more || len(unnamed) == 0)
	case v.items != nil:
		list, isList := doc.([]any)
		return isList && v.listFits(list, echoes, exact)
	case exact && v.echoed:
		return isText
	}
	return v.scalarFits(doc, echoes)
}

// listFits compares a list. An item without a literal describes all items of doc.
func (v shape) listFits(list []any, echoes []echo, exact bool) bool {
	fits := func(item shape) func(any) bool {
		return func(has any) bool { return item.fits(has, echoes, exact) }
	}
	literal := len(v.items) == 0
	for _, item := range v.items {
		item.leaves("", func(_ string, leaf *shape) { literal = literal || !leaf.any })
	}
	switch {
	case len(v.items) == 1 && !literal && !exact:
		other := slices.ContainsFunc(list, func(has any) bool { return !fits(v.items[0])(has) })
		return !other && (len(list) > 0 || v.items[0].fields == nil)
	case v.mixed:
		return !slices.ContainsFunc(v.items, func(item shape) bool { return !slices.ContainsFunc(list, fits(item)) }) &&
			(v.more || v.itemsMayFollow() || len(list) == len(v.items))
	case !v.more && !v.itemsMayFollow() || exact:
		return len(list) >= len(v.items) && (v.more || len(list) == len(v.items)) &&
			slices.EqualFunc(v.items, list[:len(v.items)], func(item shape, has any) bool { return fits(item)(has) })
	}
	for _, item := range v.items { // in their order, possibly with others between them
		i := slices.IndexFunc(list, fits(item))
		if i < 0 {
			return false
		}
		list = list[i+1:]
	}
	return true
}

// itemsMayFollow reports whether the list may have more items than the contract names. A list of
// objects may, because other tests may have created some.
func (v shape) itemsMayFollow() bool {
	return slices.ContainsFunc(v.items, func(item shape) bool { return item.fields != nil })
}

// without removes the values of the shape from doc.
func (v shape) without(doc any) any {
	object, ok := doc.(map[string]any)
	switch {
	case ok && v.fields != nil && len(v.fields) == 0 && !v.more:
		return map[string]any{"altered": true} // the contract names an empty object
	case !ok && v.items != nil && len(v.items) == 0 && !v.more:
		return []any{map[string]any{}} // the contract names an empty list
	case !ok && len(v.items) > 0 && len(v.items[0].fields) > 0: // each item without its values
		list, _ := doc.([]any)
		for i := range list {
			list[i] = v.items[0].without(list[i])
		}
		return doc
	case !ok:
		return map[string]any{}
	}
	for _, f := range v.fields {
		delete(object, f.key)
	}
	return object
}
