package yamlfile

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Lines maps every dotted key of a document to the line on which it stands;
// the items of a list are key[0], key[1] and so on. What is decoded can then be
// judged later and still be answered with a line.
func Lines(data []byte) map[string]int {
	lines := map[string]int{}
	var doc yaml.Node
	if yaml.Unmarshal(data, &doc) == nil {
		find(&doc, func(key string, k, _ *yaml.Node) bool {
			lines[key] = k.Line
			return false
		})
	}
	return lines
}

// At is the mistake in what stands at a dotted key, on the line of the nearest key that
// is there.
func At(name string, data []byte, key string, err error) *Error {
	lines := Lines(data)
	e := &Error{File: name, Msg: key + ": " + err.Error()}
	for ; key != "" && e.Line == 0; key = parentOf(key) {
		e.Line = lines[key]
	}
	return e
}

// find returns the first key of a document for which is says so, "" for none. It does
// not follow aliases, so it visits each value once. The key node of an item is the item.
func find(doc *yaml.Node, is func(key string, k, v *yaml.Node) bool) string {
	var in func(at string, n *yaml.Node) string
	in = func(at string, n *yaml.Node) string {
		for i, v := range n.Content {
			k, key := v, at
			switch n.Kind {
			case yaml.SequenceNode:
				key = fmt.Sprintf("%s[%d]", at, i)
			case yaml.MappingNode:
				if i%2 == 0 {
					continue
				}
				k = n.Content[i-1]
				key = strings.TrimPrefix(at+"."+k.Value, ".")
			}
			if n.Kind != yaml.DocumentNode && is(key, k, v) {
				return key
			}
			if found := in(key, v); found != "" {
				return found
			}
		}
		return ""
	}
	return in("", doc)
}

// parentOf is the key that a dotted key stands below, "" for the whole document.
func parentOf(key string) string { return key[:max(strings.LastIndexAny(key, ".["), 0)] }

// Fields are the keys, sorted, that the struct at a dotted key of v may have.
func Fields(v any, key string) []string {
	var known []string
	if t := typeAt(v, key); t.Kind() == reflect.Struct {
		for _, f := range reflect.VisibleFields(t) {
			if name := nameOf(f); name != "" {
				known = append(known, name)
			}
		}
	}
	slices.Sort(known)
	return known
}

// typeAt is the type of what stands at a dotted key of v, or of its items.
func typeAt(v any, key string) reflect.Type {
	t := reflect.TypeOf(v)
	for word := range strings.FieldsFuncSeq(key, func(c rune) bool { return c == '.' || c == '[' }) {
		if t = inner(t); t.Kind() == reflect.Map {
			t = t.Elem()
		} else if t.Kind() == reflect.Struct {
			if f, ok := t.FieldByNameFunc(func(name string) bool {
				f, _ := t.FieldByName(name)
				return nameOf(f) == word
			}); ok {
				t = f.Type
			}
		}
	}
	return inner(t)
}

// inner is what pointers and lists are of.
func inner(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t
}

func nameOf(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return strings.TrimPrefix(name, "-")
}

// Values returns what is set in v as text by dotted key: the items of a list are joined
// by ", ", and nothing stands for what is behind a nil pointer or in an empty map.
func Values(v any) map[string]string {
	values := map[string]string{}
	var doc yaml.Node
	if doc.Encode(v) != nil {
		return values
	}
	find(&doc, func(key string, _, n *yaml.Node) bool {
		switch {
		case strings.HasSuffix(key, "]"):
			list := parentOf(key)
			values[list] = strings.TrimPrefix(values[list]+", "+n.Value, ", ")
		case n.Kind == yaml.SequenceNode:
			values[key] = ""
		case n.Kind == yaml.ScalarNode && n.ShortTag() != "!!null":
			values[key] = n.Value
		}
		return false
	})
	return values
}

// Set gives the value at a dotted key of what into points to the meaning that text would
// have in a file. The items of a list are separated by commas. name is where text is from.
func Set(name string, into any, key, text string) error {
	value := &yaml.Node{Kind: yaml.ScalarNode, Value: strings.TrimSpace(text)}
	var now yaml.Node
	if err := now.Encode(into); err != nil {
		return err
	}
	if isList := func(at string, _, v *yaml.Node) bool { return at == key && v.Kind == yaml.SequenceNode }; find(&now, isList) != "" {
		value = &yaml.Node{Kind: yaml.SequenceNode}
		for item := range strings.SplitSeq(text, ",") {
			value.Content = append(value.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: strings.TrimSpace(item)})
		}
	}
	words := strings.Split(key, ".")
	for _, word := range slices.Backward(words) {
		value = &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Value: word}, value}}
	}
	if err := checkWhole(name, value, into); err != nil {
		return err
	}
	if err := value.Decode(into); err != nil {
		return reword(name, value, into, err)
	}
	return nil
}
