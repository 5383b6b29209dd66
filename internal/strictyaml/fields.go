package strictyaml

import (
	"abl/internal/nearest"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// fieldsOf maps the keys of a struct type to the indexes of its fields.
func fieldsOf(t reflect.Type) map[string][]int {
	fields := make(map[string][]int, t.NumField())
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case !f.IsExported() || f.Anonymous || name == "-":
			continue
		case name == "":
			name = strings.ToLower(f.Name)
		}
		fields[name] = f.Index
	}
	return fields
}

// unknownKey words the answer to a key that the struct at parent lacks.
func unknownKey(word, parent string, fields map[string][]int) string {
	known := slices.Sorted(maps.Keys(fields))
	msg := fmt.Sprintf("unknown key %q", word)
	if parent != "" {
		msg += " in " + parent
	}
	if near := nearest.Word(word, known); near != "" {
		return fmt.Sprintf("%s; did you mean %q?", msg, near)
	}
	return msg + "; known are " + strings.Join(known, ", ")
}
