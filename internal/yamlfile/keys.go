package yamlfile

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Key is one key of a document, or one item of a list, with what stands there.
type Key struct {
	Path  []string // "app", "port"; the first item of a list is "[0]"
	Line  int
	Text  string // of one value
	value *yaml.Node
	in    reflect.Type // that it is decoded into a part of; nil where it is not known
	of    reflect.Type // that it is decoded into, likewise

	hasParts bool // keys or items that are known stand there
	unknown  bool // its type has no such key
}

// String is the dotted key: app.port, names[0].
func (k Key) String() string { return strings.ReplaceAll(strings.Join(k.Path, "."), ".[", "[") }

// Keys are those of v as it is written, in order; what an alias stands for is left out.
func Keys(v any) []Key {
	var doc yaml.Node
	if doc.Encode(v) != nil {
		return nil
	}
	return keysOf(&doc, nil)
}

func keysOf(n *yaml.Node, t reflect.Type, path ...string) (all []Key) {
	for i, v := range n.Content {
		k := Key{Path: append(slices.Clone(path), fmt.Sprintf("[%d]", i)), Line: v.Line, Text: v.Value, value: v, in: t}
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

// partOf is the type of what a key stands for in a type, nil where it is not known.
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

// fields are the keys that a type may have, with theirs. One of a list may stand for it.
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

// KeysIn are those of a document, so that what is decoded can be judged later and
// still be answered with a line; none when it is no YAML.
func KeysIn(data []byte) []Key {
	var doc yaml.Node
	if yaml.Unmarshal(data, &doc) != nil {
		return nil
	}
	return keysOf(&doc, nil)
}

// At is the mistake in what stands at a dotted key, on the line of the nearest key that
// is there.
func At(name string, data []byte, key string, err error) *Error {
	return &Error{File: name, Line: LineOf(data, key), Msg: key + ": " + err.Error()}
}

// LineOf returns the line of a dotted key in a document, or of the nearest key above it that is
// there, 0 when there is none.
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

// Above is the key that a dotted key stands below, "" for the whole document.
func Above(key string) string { return key[:max(strings.LastIndexAny(key, ".["), 0)] }

// Values returns what is set in v as text by dotted key: the items of a list are joined
// by ", ", and nothing stands for what is behind a nil pointer or in an empty map.
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

// HasValue says that a value stands there, or a list of them, rather than further keys or null.
func (k Key) HasValue() bool {
	return k.value.Kind == yaml.SequenceNode || k.value.Kind == yaml.ScalarNode && k.value.ShortTag() != "!!null"
}

// Set gives the value at a dotted key of what into points to the meaning that text would
// have in a file. The items of a list are separated by commas. name is where text is from.
func Set(name string, into any, key, text string) error {
	words, t := strings.Split(key, "."), reflect.TypeOf(into).Elem()
	for _, word := range words {
		t = partOf(t, word)
	}
	value := &yaml.Node{Kind: yaml.ScalarNode, Value: strings.TrimSpace(text)}
	if t != nil && t.Kind() == reflect.Slice {
		value = &yaml.Node{Kind: yaml.SequenceNode}
		for item := range strings.SplitSeq(text, ",") {
			value.Content = append(value.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: strings.TrimSpace(item)})
		}
	}
	for _, word := range slices.Backward(words) {
		value = &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Value: word}, value}}
	}
	return decode(name, value, into, value.Decode)
}
