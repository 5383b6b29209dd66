// Package strictyaml reads YAML as strictly as a person's typing mistakes
// deserve: unknown keys, wrong types and duplicates are errors that name the
// file, the line and the nearest right answer. It is the only importer of the
// YAML library.
package strictyaml

import (
	"bytes"
	"fmt"
	"reflect"

	"go.yaml.in/yaml/v3"
)

const (
	maxBytes    = 1 << 20
	maxDepth    = 64    // levels of nesting, aliases followed
	maxExpanded = 10000 // values reached through aliases
)

// Error is a mistake in a YAML file.
type Error struct {
	File string
	Line int // counted from 1; 0 when the mistake has no line
	Msg  string
	Hint string // what to do about it, "" when the message says it already
}

// Error gives "FILE:LINE: message".
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Msg
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg)
}

// Unmarshaler is a type that reads itself, because it may be written in more
// than one way. A plain error of it gets the file and line of the value.
type Unmarshaler interface {
	FromYAML(n Node) error
}

// Defaulter is a type with defaults of its own. They are filled in where
// decoding makes a new value: behind a pointer, in a map or in a list.
type Defaulter interface {
	SetDefaults()
}

// Decode reads the one document in data into the value that into points to.
// Keys that the document lacks, or leaves empty, keep what into already holds,
// so defaults are filled in before the call. Fields are named by their yaml
// tags; a type may read itself as Unmarshaler or as encoding.TextUnmarshaler.
// Every error is an *Error; name is the file that it names.
func Decode(name string, data []byte, into any) error {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return fmt.Errorf("internal error: cannot decode %s into %T", name, into)
	}
	root, err := parse(name, data)
	if err != nil || root == nil {
		return err
	}
	d := &decoder{file: name}
	return d.value(root, "", v.Elem())
}

// Marshal writes v as YAML, indented by two spaces.
func Marshal(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("cannot write YAML: %w", err)
	}
	if err := enc.Close(); err != nil {
		return nil, fmt.Errorf("cannot write YAML: %w", err)
	}
	return out.Bytes(), nil
}
