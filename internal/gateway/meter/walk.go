package meter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// ErrForm is that of a text which is no JSON, or none of the kind that is asked for.
var ErrForm = errors.New("it is of another form")

// Values shows the values of an object or a list, of which the first character is
// begin, each as it stands in text and with its name, if it has one. A name that is there
// twice is an error: programs differ in which one they take.
func Values(text []byte, begin json.Delim, show func(name string, value []byte) error) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if first, err := d.Token(); err != nil || first != begin {
		return ErrForm
	}
	seen := map[string]bool{}
	for d.More() {
		name := ""
		if begin == '{' {
			key, err := d.Token()
			if err != nil {
				return ErrForm
			}
			if name = key.(string); seen[name] {
				return fmt.Errorf("the body has the field %.100q twice", name)
			}
			seen[name] = true
		}
		from := d.InputOffset()
		if d.Decode(&passedOver{}) != nil {
			return ErrForm
		}
		if err := show(name, bytes.TrimLeft(text[from:d.InputOffset()], ":, \t\r\n")); err != nil {
			return err
		}
	}
	_, err := d.Token()
	if _, end := d.Token(); err != nil || !errors.Is(end, io.EOF) {
		return ErrForm
	}
	return nil
}

// passedOver is a value of which only the place is wanted: a body is a whole
// conversation, and copies of it would fill the gateway's memory.
type passedOver struct{}

// UnmarshalJSON takes any value.
func (*passedOver) UnmarshalJSON([]byte) error { return nil }

// Walk shows what an object holds, each value with the names that lead to it from the
// place at, joined by points. The entries of a list stand where the list does, so that a
// list within a list is none that can be read. It goes into those values of which show says so.
func Walk(at string, text []byte, show func(place string, value []byte) (into bool)) error {
	text = bytes.TrimLeft(text, " \t\r\n")
	if len(text) == 0 || text[0] != '{' && text[0] != '[' {
		return nil
	}
	return Values(text, json.Delim(text[0]), func(name string, value []byte) error {
		place := at
		if text[0] == '{' {
			if place != "" {
				place += "."
			}
			place += name
		}
		switch {
		case !show(place, value):
			return nil
		case text[0] == '[' && value[0] == '[':
			return ErrForm
		}
		return Walk(place, value, show)
	})
}

// Text is a value when it is one, else "".
func Text(value []byte) (s string) {
	if json.Unmarshal(value, &s) != nil {
		return ""
	}
	return s
}
