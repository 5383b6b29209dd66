package strictyaml

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Values returns what is set in the struct v, or what v points to, as text by
// dotted key: the items of a list are joined by ", ", and nothing stands for
// what is behind a nil pointer or in an empty map.
func Values(v any) map[string]string {
	out := make(map[string]string)
	flatten(out, "", reflect.ValueOf(v))
	return out
}

func flatten(out map[string]string, key string, v reflect.Value) {
	switch {
	case (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) && v.IsNil():
		return
	case isText(v):
		out[key] = text(v)
	case v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface:
		flatten(out, key, v.Elem())
	case v.Kind() == reflect.Struct:
		for name, i := range fieldsOf(v.Type()) {
			flatten(out, join(key, name), v.FieldByIndex(i))
		}
	case v.Kind() == reflect.Map:
		for _, k := range v.MapKeys() {
			flatten(out, join(key, k.String()), v.MapIndex(k))
		}
	}
}

// isText says whether v is shown as one text rather than by its parts.
func isText(v reflect.Value) bool {
	if _, ok := v.Interface().(encoding.TextMarshaler); ok {
		return true
	}
	return !slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Interface, reflect.Struct, reflect.Map}, v.Kind())
}

func text(v reflect.Value) string {
	if own, ok := v.Interface().(encoding.TextMarshaler); ok {
		b, _ := own.MarshalText() // a value without text is shown as nothing
		return string(b)
	}
	if v.Kind() != reflect.Slice {
		return fmt.Sprint(v.Interface())
	}
	items := make([]string, v.Len())
	for i := range items {
		items[i] = text(v.Index(i))
	}
	return strings.Join(items, ", ")
}
