package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// libraryLine matches the line that the YAML library puts into its messages.
var libraryLine = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?`)

// parse returns the root value of the one document in data, nil when there is
// none.
func parse(name string, data []byte) (*yaml.Node, error) {
	if len(data) > maxBytes {
		return nil, &Error{File: name, Msg: fmt.Sprintf("is larger than %d bytes", maxBytes)}
	}
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	if line := badLine(data); line > 0 {
		return nil, &Error{File: name, Line: line, Msg: "is not UTF-8 text"}
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, next yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, syntaxError(name, data, err)
	}
	switch err := dec.Decode(&next); {
	case errors.Is(err, io.EOF):
		return doc.Content[0], nil
	case err != nil:
		return nil, syntaxError(name, data, err)
	}
	return nil, &Error{File: name, Line: next.Line, Msg: `a second document begins here; want one, without "---" between`}
}

// syntaxError words the library's error as one of ours. A tab is looked for
// first, since the library's sentence about it does not say "tab".
func syntaxError(name string, data []byte, err error) *Error {
	if line := tabLine(data); line > 0 {
		return &Error{File: name, Line: line, Msg: "is indented with a tab; YAML wants spaces"}
	}
	msg := err.Error()
	at := libraryLine.FindStringSubmatch(msg)
	line, _ := strconv.Atoi(at[1]) // no line is line 0
	return &Error{File: name, Line: line, Msg: "is not YAML: " + strings.TrimPrefix(msg, at[0])}
}

// tabLine returns the first line whose indentation has a tab, 0 for none.
func tabLine(data []byte) int {
	n := 0
	for line := range bytes.Lines(data) {
		n++
		text := bytes.TrimLeft(line, " \t")
		if bytes.ContainsRune(line[:len(line)-len(text)], '\t') && len(bytes.TrimSpace(text)) > 0 {
			return n
		}
	}
	return 0
}

// badLine returns the first line that is not UTF-8, 0 for none.
func badLine(data []byte) int {
	n := 0
	for line := range bytes.Lines(data) {
		n++
		if !utf8.Valid(line) {
			return n
		}
	}
	return 0
}
