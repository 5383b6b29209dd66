package strictyaml

import (
	"fmt"
	"math"
	"reflect"
	"strconv"

	"go.yaml.in/yaml/v3"
)

func isNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

// scalar decodes one word. A string takes the text of any scalar as it is
// written, so that PORT: 3000 and version: 1.10 mean what they look like.
func (d *decoder) scalar(n *yaml.Node, key string, v reflect.Value) error {
	want, known := wanted[v.Kind()]
	if !known {
		return fmt.Errorf("internal error: cannot decode into %s", v.Type())
	}
	if n.Kind != yaml.ScalarNode || !d.setScalar(n, v) {
		return d.wrong(n, key, want)
	}
	return nil
}

// wanted words what each kind of field takes.
var wanted = map[reflect.Kind]string{
	reflect.String: "text",
	reflect.Bool:   "true or false",
	reflect.Int:    "a whole number", reflect.Int64: "a whole number",
	reflect.Uint: "a whole number of 0 or more", reflect.Uint64: "a whole number of 0 or more",
	reflect.Float64: "a number",
}

func (d *decoder) setScalar(n *yaml.Node, v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String:
		v.SetString(n.Value)
		return n.ShortTag() != "!!binary"
	case reflect.Bool:
		v.SetBool(n.Value == "true")
		return n.ShortTag() == "!!bool" && (n.Value == "true" || n.Value == "false")
	case reflect.Int, reflect.Int64:
		i, err := strconv.ParseInt(n.Value, 10, v.Type().Bits())
		v.SetInt(i)
		return err == nil && n.ShortTag() == "!!int"
	case reflect.Uint, reflect.Uint64:
		u, err := strconv.ParseUint(n.Value, 10, v.Type().Bits())
		v.SetUint(u)
		return err == nil && n.ShortTag() == "!!int"
	}
	f, err := strconv.ParseFloat(n.Value, 64)
	v.SetFloat(f)
	tag := n.ShortTag()
	return err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) && (tag == "!!int" || tag == "!!float")
}

// anything decodes into an empty interface: map[string]any, []any, or what the
// word looks like.
func (d *decoder) anything(n *yaml.Node, key string, v reflect.Value) error {
	var out reflect.Value
	switch {
	case n.Kind == yaml.MappingNode:
		out = reflect.New(reflect.TypeFor[map[string]any]()).Elem()
	case n.Kind == yaml.SequenceNode:
		out = reflect.New(reflect.TypeFor[[]any]()).Elem()
	case n.ShortTag() == "!!bool":
		out = reflect.New(reflect.TypeFor[bool]()).Elem()
	case n.ShortTag() == "!!int":
		out = reflect.New(reflect.TypeFor[int64]()).Elem()
	case n.ShortTag() == "!!float":
		out = reflect.New(reflect.TypeFor[float64]()).Elem()
	default:
		out = reflect.New(reflect.TypeFor[string]()).Elem()
	}
	if err := d.value(n, key, out); err != nil {
		return err
	}
	v.Set(out)
	return nil
}

// wrong is the error for a value of another type than the field's.
func (d *decoder) wrong(n *yaml.Node, key, want string) *Error {
	if key == "" {
		return d.fail(n, "want %s, got %s", want, looks(n))
	}
	return d.fail(n, "%s: want %s, got %s", key, want, looks(n))
}

func looks(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "keys and values"
	case yaml.SequenceNode:
		return "a list"
	}
	const shown = 60
	if text := []rune(n.Value); len(text) > shown {
		return strconv.Quote(string(text[:shown]) + "…")
	}
	return strconv.Quote(n.Value)
}
