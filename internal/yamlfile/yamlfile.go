// Package yamlfile reads files of YAML with go.yaml.in/yaml, unknown keys refused, and
// words the library's mistakes for a person: with the file, the line, the key and the
// nearest right one. It is the only importer of the library; what a file means is not in it.
package yamlfile

import (
	"bytes"
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"abl/internal/lazyregexp"
	"abl/internal/wording"
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

// Decode reads the one document in data into the value that into points to. Keys that
// the document lacks keep what into already holds. Every error is an *Error; name is
// the file that it names.
func Decode(name string, data []byte, into any) error {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	var doc, next yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(data))
	switch err := d.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return wrongSyntax(name, data, err)
	}
	if err := d.Decode(&next); err == nil {
		return &Error{File: name, Line: next.Line, Msg: `a second document begins here; want one, without "---" between`}
	} else if !errors.Is(err, io.EOF) {
		return wrongSyntax(name, data, err)
	}
	if root := doc.Content[0]; root.Kind != yaml.MappingNode && root.ShortTag() != "!!null" {
		return &Error{File: name, Line: root.Line, Msg: "want keys and values, got " + looks(root)}
	}
	strict := yaml.NewDecoder(bytes.NewReader(data))
	strict.KnownFields(true)
	return decode(name, &doc, into, strict.Decode)
}

// decode judges key by key first: the library tells some mistakes without their line, and
// all of them in its own words.
func decode(name string, doc *yaml.Node, into any, read func(any) error) error {
	for _, k := range keysOf(doc, reflect.TypeOf(into).Elem()) {
		if k.unknown {
			return &Error{File: name, Line: k.Line, Msg: unknownKey(k)}
		}
		if err := k.misfit(); err != nil {
			return &Error{File: name, Line: k.value.Line, Msg: fmt.Sprintf("%s: %v", k, err)}
		}
	}
	if err := read(into); err != nil {
		line, msg := lineOf(err)
		return &Error{File: name, Line: line, Msg: msg}
	}
	return nil
}

var decimal = lazyregexp.New(`^-?(0|[1-9][0-9]*)$`)

// misfit says why what stands at a key cannot be what the key is for. The library would
// cut 1.5 down to 1, which can make no limit of one, and take 010 for 8.
func (k Key) misfit() error {
	if k.of == nil || k.hasParts {
		return nil
	}
	tag, err := k.value.ShortTag(), k.value.Decode(reflect.New(k.of).Interface())
	fits := !errors.As(err, new(*yaml.TypeError))
	switch {
	case isText(k.of):
		fits = fits && tag != "!!map" && tag != "!!seq"
	case k.of == reflect.TypeFor[int](), k.of == reflect.TypeFor[int64]():
		fits = fits && (tag == "!!null" || decimal().MatchString(k.Text))
	}
	if !fits {
		return fmt.Errorf("want %s, got %s", wanted(k.of), looks(k.value))
	}
	return err
}

// isText says that a type reads itself from a text.
func isText(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// Marshal writes v as YAML.
func Marshal(v any) ([]byte, error) { return yaml.Marshal(v) }

// lineOf takes the line off what the library says first.
func lineOf(err error) (line int, msg string) {
	msg = strings.TrimPrefix(err.Error(), "yaml: ")
	if many := new(yaml.TypeError); errors.As(err, &many) {
		msg = many.Errors[0]
	}
	if n, _ := fmt.Sscanf(msg, "line %d:", &line); n == 1 {
		_, msg, _ = strings.Cut(msg, ": ")
	}
	return line, msg
}

var tab = lazyregexp.New(`(?m)^ *\t`)

// wrongSyntax looks for a tab first, since the library's sentence about it does not say "tab".
func wrongSyntax(name string, data []byte, err error) *Error {
	if at := tab().FindIndex(data); at != nil {
		line := 1 + bytes.Count(data[:at[0]], []byte("\n"))
		return &Error{File: name, Line: line, Msg: "is indented with a tab; YAML wants spaces"}
	}
	line, msg := lineOf(err)
	return &Error{File: name, Line: line, Msg: "is not YAML: " + msg}
}

// unknownKey words the answer to a key that the part of the file that it is in lacks.
func unknownKey(k Key) string {
	word, known := k.Path[len(k.Path)-1], slices.Sorted(maps.Keys(fields(k.in)))
	msg := fmt.Sprintf("unknown key %q", word)
	if parent := Above(k.String()); parent != "" {
		msg += " in " + parent
	}
	if near := wording.Near(word, known); near != "" {
		return fmt.Sprintf("%s; did you mean %q?", msg, near)
	}
	return msg + "; known are " + strings.Join(known, ", ")
}

// wanted says in a person's words what a type takes.
func wanted(t reflect.Type) string {
	words := map[reflect.Kind]string{
		reflect.Int: "a whole number", reflect.Int64: "a whole number", reflect.Float64: "a number",
		reflect.Bool: "true or false", reflect.String: "text", reflect.Slice: "a list",
	}
	if isText(t) {
		return "one value"
	}
	return cmp.Or(words[t.Kind()], "keys and values")
}

func looks(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "keys and values"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return looks(n.Alias)
	}
	return strconv.Quote(wording.Cut(n.Value, 60))
}
