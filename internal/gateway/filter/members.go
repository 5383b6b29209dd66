package filter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

var errForm = errors.New("it is of another form")

// members returns the members of a JSON object, as they stand in text. A name that is
// there twice is refused: programs differ in which one they take.
func members(text []byte) (map[string]json.RawMessage, error) {
	found := map[string]json.RawMessage{}
	err := values(text, '{', func(name string, value []byte) error {
		if found[name] != nil {
			return fmt.Errorf("the body has the field %q twice", clip(name))
		}
		found[name] = value
		return nil
	})
	return found, err
}

// values shows the values of an object or a list, of which the first character is
// begin, each with its name, if it has one.
func values(text []byte, begin json.Delim, show func(name string, value []byte) error) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if first, err := d.Token(); err != nil || first != begin {
		return errForm
	}
	for d.More() {
		name := ""
		if begin == '{' {
			key, err := d.Token()
			if err != nil {
				return errForm
			}
			name = key.(string)
		}
		from := d.InputOffset()
		if d.Decode(&passedOver{}) != nil {
			return errForm
		}
		if err := show(name, bytes.TrimLeft(text[from:d.InputOffset()], ":, \t\r\n")); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return errForm
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errForm
	}
	return nil
}

// passedOver is a value of which only the place is wanted: a body is a whole
// conversation, and copies of it would fill the gateway's memory.
type passedOver struct{}

// UnmarshalJSON takes any value.
func (*passedOver) UnmarshalJSON([]byte) error { return nil }
