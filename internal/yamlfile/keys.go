package yamlfile

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Key is a key of a document, or an item of a list, with its value.
type Key struct {
	Path  []string // "app", "port"; the first item of a list is "[0]"
	Line  int
	Text  string // text of a scalar
	value *yaml.Node
	in    reflect.Type // Go type that contains it, nil if unknown
	of    reflect.Type // Go type of the value, nil if unknown

	hasParts bool // the value has known keys or items
	unknown  bool // its Go type has no such key
}

// String returns the dotted key: app.port, names[0].
func (k Key) String() string { return strings.ReplaceAll(strings.Join(k.Path, "."), ".[", "[") }

// Keys returns the keys of v in order. It does not follow aliases.
func Keys(v any) []Key {
	var doc yaml.Node
	if doc.Encode(v) != nil {
		return nil
	}
	return keysOf(&doc, nil)
}

func keysOf(n *yaml.Node, t reflect.Type, path ...string) (all []Key) {
	for i, v := range n.Content {
		k := Key{
			Path:  append(slices.Clone(path), fmt.Sprintf("[%d]", i)),
			Line:  v.Line,
			Text:  v.Value,
			value: v,
			in:    t,
		}
		switch {
		case n.Kind == yaml.DocumentNode:
			return keysOf(v, t)
		case n.Kind == yaml.MappingNode && i%2 == 0:
			continue
		case n.Kind == yaml.MappingNode:
			name := n.Content[i-1]
			k.Path[len(path)], k.Line = name.Value, name.Line
			k.unknown = len(fields(t)) > 0 && fields(t)[name.Value] == nil && name.ShortTag() != "!!merge"
		}
		k.of = partOf(t, k.Path[len(path)])
		below := keysOf(v, k.of, k.Path...)
		k.hasParts = slices.ContainsFunc(below, func(b Key) bool { return b.of != nil })
		all = append(append(all, k), below...)
	}
	return all
}

// partOf returns the type of the value of a key in a type, nil if unknown.
func partOf(t reflect.Type, key string) reflect.Type {
	switch {
	case t == nil:
	case t.Kind() == reflect.Map, t.Kind() == reflect.Slice && strings.HasPrefix(key, "["):
		t = t.Elem()
	default:
		t = fields(t)[key]
	}
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// fields returns the keys of a struct type with their types. For a slice it returns those of its
// elements.
func fields(t reflect.Type) map[string]reflect.Type {
	if t != nil && t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	all := map[string]reflect.Type{}
	if t != nil && t.Kind() == reflect.Struct {
		for _, f := range reflect.VisibleFields(t) {
			if name, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); name != "" && name != "-" {
				all[name] = f.Type
			}
		}
	}
	return all
}

// KeysIn returns the keys of a document, so that checks of the decoded value can report line
// numbers. It returns nil if data is not YAML.
func KeysIn(data []byte) []Key {
	var doc yaml.Node
	if yaml.Unmarshal(data, &doc) != nil {
		return nil
	}
	return keysOf(&doc, nil)
}

// At returns an error about the value of a dotted key, with the line of the nearest existing key.
func At(name string, data []byte, key string, err error) *Error {
	return &Error{File: name, Line: LineOf(data, key), Msg: key + ": " + err.Error()}
}

// LineOf returns the line of a dotted key in a document, or of its nearest existing parent, or 0.
func LineOf(data []byte, key string) (line int) {
	lines := map[string]int{}
	for _, k := range KeysIn(data) {
		lines[k.String()] = k.Line
	}
	for ; key != "" && line == 0; key = Above(key) {
		line = lines[key]
	}
	return line
}

// Above returns the parent of a dotted key, "" for a top-level key.
func Above(key string) string { return key[:max(strings.LastIndexAny(key, ".["), 0)] }

// Values returns the values in v as text by dotted key. Items of a list are joined by ", ". It
// omits nil pointers and empty maps.
func Values(v any) map[string]string {
	values := map[string]string{}
	for _, k := range Keys(v) {
		switch key := k.String(); {
		case strings.HasSuffix(key, "]"):
			values[Above(key)] = strings.TrimPrefix(values[Above(key)]+", "+k.Text, ", ")
		case k.HasValue():
			values[key] = k.Text
		}
	}
	return values
}

// HasValue reports whether the value is a scalar or a list, not a mapping or null.
func (k Key) HasValue() bool {
	return k.value.Kind == yaml.SequenceNode || k.value.Kind == yaml.ScalarNode && k.value.ShortTag() != "!!null"
}

// Set sets the value of a dotted key in the value that into points to. text has the same meaning as
// in a file. Commas separate the items of a list. name is the source of text, for errors.
func Set(name string, into any, key, text string) error {
	value := nodeOf(reflect.TypeOf(into).Elem(), key, text)
	for _, word := range slices.Backward(strings.Split(key, ".")) {
		value = &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Value: word}, value}}
	}
	return decode(name, value, into, value.Decode)
}

// Inline returns text as a file has it on the line of a dotted key of v: with the quotes that YAML needs, and
// in brackets for a list.
func Inline(v any, key, text string) string {
	data, _ := yaml.Marshal(nodeOf(reflect.TypeOf(v), key, text)) // a scalar or a list of scalars can be written
	return strings.TrimSpace(string(data))
}

// nodeOf returns the value of a dotted key in a type.
func nodeOf(t reflect.Type, key, text string) *yaml.Node {
	for word := range strings.SplitSeq(key, ".") {
		t = partOf(t, word)
	}
	if t == nil || t.Kind() != reflect.Slice {
		return &yaml.Node{Kind: yaml.ScalarNode, Value: strings.TrimSpace(text)}
	}
	list := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for item := range strings.SplitSeq(text, ",") {
		list.Content = append(list.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: strings.TrimSpace(item)})
	}
	return list
}
