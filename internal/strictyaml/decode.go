package strictyaml

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"

	"go.yaml.in/yaml/v3"
)

// decoder carries what one Decode has spent of its caps.
type decoder struct {
	file     string
	depth    int
	inAlias  int
	expanded int
}

// value decodes n, which stands at the dotted key, into v.
func (d *decoder) value(n *yaml.Node, key string, v reflect.Value) error {
	leave, err := d.enter(n)
	defer leave()
	if err != nil {
		return err
	}
	if n.Kind == yaml.AliasNode {
		d.inAlias++
		defer func() { d.inAlias-- }()
		return d.value(n.Alias, key, v)
	}
	if isNull(n) {
		return nil
	}
	if done, err := d.custom(n, key, v); done {
		return err
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(create(v.Type().Elem()))
		}
		return d.value(n, key, v.Elem())
	case reflect.Struct:
		return d.structure(n, key, v)
	case reflect.Map:
		return d.mapping(n, key, v)
	case reflect.Slice:
		return d.list(n, key, v)
	case reflect.Interface:
		return d.anything(n, key, v)
	}
	return d.scalar(n, key, v)
}

// create returns a pointer to a new value with its defaults.
func create(t reflect.Type) reflect.Value {
	p := reflect.New(t)
	if own, ok := p.Interface().(Defaulter); ok {
		own.SetDefaults()
	}
	return p
}

// enter counts one more value against the caps, which also end a cycle of
// aliases.
func (d *decoder) enter(n *yaml.Node) (leave func(), err error) {
	d.depth++
	leave = func() { d.depth-- }
	if d.depth > maxDepth {
		return leave, d.fail(n, "is nested deeper than %d levels", maxDepth)
	}
	if d.inAlias > 0 {
		d.expanded++
	}
	if d.expanded > maxExpanded {
		return leave, d.fail(n, "aliases stand for more than %d values", maxExpanded)
	}
	return leave, nil
}

// custom lets a type read itself; done is false when it does not.
func (d *decoder) custom(n *yaml.Node, key string, v reflect.Value) (done bool, err error) {
	if !v.CanAddr() {
		return false, nil
	}
	switch own := v.Addr().Interface().(type) {
	case Unmarshaler:
		err = own.FromYAML(Node{node: n, key: key, dec: d})
	case encoding.TextUnmarshaler:
		if n.Kind != yaml.ScalarNode {
			return true, d.wrong(n, key, "one value")
		}
		err = own.UnmarshalText([]byte(n.Value))
	default:
		return false, nil
	}
	var located *Error
	if err == nil || errors.As(err, &located) {
		return true, err
	}
	return true, d.fail(n, "%s: %v", key, err)
}

func (d *decoder) structure(n *yaml.Node, key string, v reflect.Value) error {
	if n.Kind != yaml.MappingNode {
		return d.wrong(n, key, "keys and values")
	}
	fields := fieldsOf(v.Type())
	return d.pairs(n, func(k, val *yaml.Node) error {
		i, known := fields[k.Value]
		if !known {
			return d.fail(k, "%s", unknownKey(k.Value, key, fields))
		}
		return d.value(val, join(key, k.Value), v.FieldByIndex(i))
	})
}

func (d *decoder) mapping(n *yaml.Node, key string, v reflect.Value) error {
	if n.Kind != yaml.MappingNode {
		return d.wrong(n, key, "keys and values")
	}
	if v.Type().Key().Kind() != reflect.String {
		return fmt.Errorf("internal error: cannot decode into %s", v.Type())
	}
	if v.IsNil() {
		v.Set(reflect.MakeMap(v.Type()))
	}
	return d.pairs(n, func(k, val *yaml.Node) error {
		elem := create(v.Type().Elem()).Elem()
		if err := d.value(val, join(key, k.Value), elem); err != nil {
			return err
		}
		v.SetMapIndex(reflect.ValueOf(k.Value).Convert(v.Type().Key()), elem)
		return nil
	})
}

// list replaces what v held: a list of the file is the whole list.
func (d *decoder) list(n *yaml.Node, key string, v reflect.Value) error {
	if n.Kind != yaml.SequenceNode {
		return d.wrong(n, key, "a list")
	}
	out := reflect.MakeSlice(v.Type(), 0, min(len(n.Content), maxExpanded))
	for i, item := range n.Content {
		elem := create(v.Type().Elem()).Elem()
		if err := d.value(item, fmt.Sprintf("%s[%d]", key, i), elem); err != nil {
			return err
		}
		out = reflect.Append(out, elem)
	}
	v.Set(out)
	return nil
}

// pairs calls each for every key and value of a mapping, in order.
func (d *decoder) pairs(n *yaml.Node, each func(k, v *yaml.Node) error) error {
	first := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.Kind != yaml.ScalarNode {
			return d.fail(k, "a key must be one word")
		}
		if k.Tag == "!!merge" {
			return d.fail(k, `merge keys ("<<") are not supported; write the keys out`)
		}
		if line, twice := first[k.Value]; twice {
			return d.fail(k, "duplicate key %q; it stands on line %d already", k.Value, line)
		}
		first[k.Value] = k.Line
		if err := each(k, n.Content[i+1]); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) fail(n *yaml.Node, format string, args ...any) *Error {
	return &Error{File: d.file, Line: n.Line, Msg: fmt.Sprintf(format, args...)}
}

func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}
