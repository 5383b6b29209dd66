// Package yamlfile parses YAML files strictly and reports mistakes with the file, the line, the key
// and the most similar valid key. It is the only package that imports go.yaml.in/yaml.
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
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"abl/internal/wording"
)

// Error is a mistake in a YAML file.
type Error struct {
	File string
	Line int // from 1; 0 without a line
	Msg  string
	Hint string // what to do, "" if Msg says it
}

// Error returns "FILE:LINE: message".
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Msg
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg)
}

// Decode parses data, which must contain one document, into the value that into points to. Fields
// without a key keep their values. It rejects unknown keys. Every error is an *Error with the file
// name.
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

// decode checks each key first, because the library reports some mistakes without a line.
func decode(name string, doc *yaml.Node, into any, read func(any) error) error {
	for _, k := range keysOf(doc, reflect.TypeOf(into).Elem()) {
		if k.unknown {
			return &Error{File: name, Line: k.Line, Msg: unknownKey(k)}
		}
		if err := k.checkType(); err != nil {
			return &Error{File: name, Line: k.value.Line, Msg: fmt.Sprintf("%s: %v", k, err)}
		}
	}
	if err := read(into); err != nil {
		line, msg := lineOf(err)
		return &Error{File: name, Line: line, Msg: msg}
	}
	return nil
}

var decimal = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)

// checkType checks the value of a key against its Go type. It is stricter than the library, which
// truncates 1.5 to 1 and reads 010 as 8.
func (k Key) checkType() error {
	if k.of == nil || k.hasParts {
		return nil
	}
	tag, err := k.value.ShortTag(), k.value.Decode(reflect.New(k.of).Interface())
	fits := !errors.As(err, new(*yaml.TypeError))
	switch {
	case isText(k.of):
		fits = fits && tag != "!!map" && tag != "!!seq"
	case k.of == reflect.TypeFor[int](), k.of == reflect.TypeFor[int64]():
		fits = fits && (tag == "!!null" || decimal.MatchString(k.Text))
	}
	if !fits {
		return fmt.Errorf("want %s, got %s", wanted(k.of), looks(k.value))
	}
	return err
}

// isText reports whether a type implements encoding.TextUnmarshaler.
func isText(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// Marshal returns v as YAML.
func Marshal(v any) ([]byte, error) { return yaml.Marshal(v) }

// lineOf splits the line number from the library's error.
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

var tab = regexp.MustCompile(`(?m)^ *\t`)

// wrongSyntax returns the error for invalid YAML. It checks for a tab first, because the library's
// message does not mention it.
func wrongSyntax(name string, data []byte, err error) *Error {
	if at := tab.FindIndex(data); at != nil {
		line := 1 + bytes.Count(data[:at[0]], []byte("\n"))
		return &Error{File: name, Line: line, Msg: "is indented with a tab; YAML wants spaces"}
	}
	line, msg := lineOf(err)
	hint := ""
	if strings.Contains(msg, "mapping values") {
		hint = "quote a value that contains a colon and a blank"
	}
	return &Error{File: name, Line: line, Msg: "is not YAML: " + msg, Hint: hint}
}

// unknownKey returns the message for an unknown key.
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

// wanted describes a type for messages.
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
