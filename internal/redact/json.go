package redact

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// JSON is v as one line of JSON. Every string in it is safe, as it stands there
// and once it is decoded.
func (o *Sanitizer) JSON(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("internal error: %w", err)
	}
	return append(o.Document(data), '\n'), nil
}

// Clean makes every text in what v points to safe to keep, as far as JSON has it.
func (o *Sanitizer) Clean(v any) error {
	data, err := o.JSON(v)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("internal error: %w", err)
	}
	return nil
}

// Document makes the strings of a valid JSON document safe and leaves all else
// as it is.
func (o *Sanitizer) Document(data []byte) []byte {
	out := make([]byte, 0, len(data))
	for len(data) > 0 {
		quote := bytes.IndexByte(data, '"')
		if quote < 0 {
			break
		}
		out = append(out, data[:quote]...)
		data = data[quote:]
		end := literal(data)
		out = append(out, o.literal(data[:end])...)
		data = data[end:]
	}
	return append(out, data...)
}

// literal is the length of the string at the beginning of data.
func literal(data []byte) int {
	for i := 1; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(data)
}

func (o *Sanitizer) literal(quoted []byte) []byte {
	var text string
	if json.Unmarshal(quoted, &text) != nil {
		return []byte(`""`) // it was no string of a valid document
	}
	safe := Whole(o.Redact(text))
	if safe == text && Whole(string(quoted)) == string(quoted) {
		return quoted
	}
	again, err := json.Marshal(safe)
	if err != nil {
		return []byte(`""`)
	}
	return again
}
