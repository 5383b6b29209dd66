package strictyaml

import (
	"encoding"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Keys returns the sorted dotted keys that Set can set in the struct v, or what
// v points to. Maps are left out. A struct that reads itself is listed as a
// value and with its parts, since both can be set.
func Keys(v any) []string {
	t := reflect.TypeOf(v)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	keys := keysOf(t, "")
	slices.Sort(keys)
	return keys
}

func keysOf(t reflect.Type, prefix string) []string {
	var keys []string
	for name, i := range fieldsOf(t) {
		key, ft := join(prefix, name), t.FieldByIndex(i).Type
		if ft.Kind() == reflect.Pointer {
			ft = ft.Elem()
		}
		if ft.Kind() != reflect.Map && (ft.Kind() != reflect.Struct || readsItself(ft)) {
			keys = append(keys, key)
		}
		if ft.Kind() == reflect.Struct {
			keys = append(keys, keysOf(ft, key)...)
		}
	}
	return keys
}

func readsItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// Set gives the value at a dotted key of the struct that into points to the
// meaning that text would have in a file. The items of a list are separated by
// commas. Every error is an *Error without a line; name is where text is from.
func Set(name string, into any, key, text string) error {
	v := reflect.ValueOf(into).Elem()
	d := &decoder{file: name}
	for path, rest := "", key; rest != ""; {
		var word string
		word, rest, _ = strings.Cut(rest, ".")
		if v.Kind() == reflect.Pointer && v.IsNil() {
			v.Set(create(v.Type().Elem()))
		}
		if v = reflect.Indirect(v); v.Kind() != reflect.Struct {
			return d.fail(&yaml.Node{}, "%s cannot be set here, only in the file", key)
		}
		fields := fieldsOf(v.Type())
		i, known := fields[word]
		if !known {
			return d.fail(&yaml.Node{}, "%s", unknownKey(word, path, fields))
		}
		path, v = join(path, word), v.FieldByIndex(i)
	}
	return d.value(textNode(v, text), key, v)
}

// textNode is the node that text would be in a file at the place of v.
func textNode(v reflect.Value, text string) *yaml.Node {
	word := func(s string) *yaml.Node {
		return &yaml.Node{Kind: yaml.ScalarNode, Value: strings.TrimSpace(s)}
	}
	if v.Kind() != reflect.Slice {
		return word(text)
	}
	list := &yaml.Node{Kind: yaml.SequenceNode}
	for item := range strings.SplitSeq(text, ",") {
		list.Content = append(list.Content, word(item))
	}
	return list
}
