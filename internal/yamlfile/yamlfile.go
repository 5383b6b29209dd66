// Package yamlfile reads files of YAML with go.yaml.in/yaml, unknown keys refused, and
// words the library's mistakes for a person: with the file, the line, the key and the
// nearest right one. It is the only importer of the library; what a file means is not in it.
package yamlfile

import (
	"bytes"
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
	strict := yaml.NewDecoder(bytes.NewReader(data))
	strict.KnownFields(true)
	return decode(name, &doc, into, strict.Decode)
}

var decimal = lazyregexp.New(`^-?(0|[1-9][0-9]*)$`)

// decode refuses what the library would change where a whole number is wanted: it
// cuts 1.5 down to 1, which can make no limit of one, and takes 010 for 8.
func decode(name string, doc *yaml.Node, into any, read func(any) error) error {
	keys := keysOf(doc, reflect.TypeOf(into))
	for _, k := range keys {
		whole := k.of == reflect.TypeFor[int]() || k.of == reflect.TypeFor[int64]()
		if tag := k.value.ShortTag(); whole && (tag == "!!float" || tag == "!!int" && !decimal().MatchString(k.Text)) {
			return &Error{File: name, Line: k.value.Line, Msg: fmt.Sprintf("%s: want a whole number, got %s", k, looks(k.value))}
		}
		if err := k.words(); err != nil {
			return &Error{File: name, Line: k.value.Line, Msg: fmt.Sprintf("%s: %v", k, err)}
		}
	}
	if err := read(into); err != nil {
		return reword(name, doc, keys, err)
	}
	return nil
}

// words tries a value that a type reads from its text: the library tells such a mistake
// without its line.
func (k Key) words() error {
	t := k.of
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || k.value.Kind == yaml.AliasNode || k.value.ShortTag() == "!!null" {
		return nil
	}
	reader, ok := reflect.New(t).Interface().(encoding.TextUnmarshaler)
	if ok && k.value.Kind != yaml.ScalarNode {
		return errors.New("want one value, got " + looks(k.value))
	}
	if !ok {
		return nil
	}
	return reader.UnmarshalText([]byte(k.Text))
}

// Marshal writes v as YAML.
func Marshal(v any) ([]byte, error) { return yaml.Marshal(v) }

var (
	libraryLine = lazyregexp.New(`^(?:yaml: )?(?:line (\d+): )?`)
	unknown     = lazyregexp.New(`^field (.+) not found in type `)
	wrongType   = lazyregexp.New("^cannot unmarshal (!!\\w+)(?: `(.*)`)? into (.+)$")
)

func lineOf(msg string) (line int, rest string) {
	at := libraryLine().FindStringSubmatch(msg)
	line, _ = strconv.Atoi(at[1]) // no line is line 0
	return line, strings.TrimPrefix(msg, at[0])
}

// wrongSyntax looks for a tab first, since the library's sentence about it does not say "tab".
func wrongSyntax(name string, data []byte, err error) *Error {
	n := 0
	for line := range bytes.Lines(data) {
		n++
		if text := bytes.TrimLeft(line, " \t"); bytes.ContainsRune(line[:len(line)-len(text)], '\t') {
			return &Error{File: name, Line: n, Msg: "is indented with a tab; YAML wants spaces"}
		}
	}
	line, msg := lineOf(err.Error())
	return &Error{File: name, Line: line, Msg: "is not YAML: " + msg}
}

// reword words the first mistake that the library found.
func reword(name string, doc *yaml.Node, keys []Key, err error) *Error {
	find := func(is func(Key) bool) Key {
		for _, k := range keys {
			if is(k) {
				return k
			}
		}
		return Key{value: doc}
	}
	msg := err.Error()
	var many *yaml.TypeError
	if errors.As(err, &many) {
		msg = many.Errors[0]
	}
	line, rest := lineOf(msg)
	e := &Error{File: name, Line: line, Msg: rest}
	if m := unknown().FindStringSubmatch(rest); m != nil {
		e.Msg = unknownKey(find(func(k Key) bool { return k.Line == line && k.Path[len(k.Path)-1] == m[1] }), m[1])
	} else if m := wrongType().FindStringSubmatch(rest); m != nil {
		value := strings.TrimSuffix(m[2], "...") // the library cuts a long one
		k := find(func(k Key) bool {
			return k.value.Line == line && k.value.ShortTag() == m[1] && strings.HasPrefix(k.value.Value, value)
		})
		e.Msg = strings.TrimPrefix(fmt.Sprintf("%s: want %s, got %s", k, wanted(m[3]), looks(k.value)), ": ")
	}
	return e
}

// unknownKey words the answer to a key that the part of the file that it is in lacks.
func unknownKey(k Key, word string) string {
	known := slices.Sorted(maps.Keys(fields(k.in)))
	msg := fmt.Sprintf("unknown key %q", word)
	if parent := Above(k.String()); parent != "" {
		msg += " in " + parent
	}
	if near := wording.Near(word, known); near != "" {
		return fmt.Sprintf("%s; did you mean %q?", msg, near)
	}
	return msg + "; known are " + strings.Join(known, ", ")
}

// wanted says in a person's words what a Go type takes.
func wanted(goType string) string {
	switch {
	case slices.Contains([]string{"int", "int64"}, goType):
		return "a whole number"
	case goType == "float64":
		return "a number"
	case goType == "bool":
		return "true or false"
	case goType == "string":
		return "text"
	case strings.HasPrefix(goType, "[]"):
		return "a list"
	}
	return "keys and values"
}

func looks(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "keys and values"
	case yaml.SequenceNode:
		return "a list"
	case yaml.DocumentNode:
		return looks(n.Content[0])
	case yaml.AliasNode:
		return looks(n.Alias)
	}
	return strconv.Quote(wording.Cut(n.Value, 60))
}
