package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// step turns the document of one version into that of the next.
type step func(doc map[string]json.RawMessage) error

// steps holds at index i the way from version i+1 to i+2. Version 1 is the
// first, so there is none yet.
var steps = []step{}

// decode reads a document of any version up to knows and brings it there.
func decode(data []byte, knows int, steps []step) (*File, error) {
	has, err := versionOf(data)
	if err != nil {
		return nil, err
	}
	if has > knows {
		return nil, &Newer{Has: has, Knows: knows}
	}
	if data, err = migrate(data, has, knows, steps); err != nil {
		return nil, err
	}
	f := &File{}
	if err := strict(data, f); err != nil {
		return nil, err
	}
	if err := check(f, knows); err != nil {
		return nil, err
	}
	return f, nil
}

// versionOf reads the version alone, so that a newer file with unknown fields
// is called newer and not damaged.
func versionOf(data []byte) (int, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return 0, errors.New("it is empty")
	}
	var head struct {
		Version *int `json:"version"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return 0, explain(data, err)
	}
	if head.Version == nil || *head.Version < 1 {
		return 0, errors.New("it has no valid version, so it is not abl's")
	}
	return *head.Version, nil
}

func migrate(data []byte, has, knows int, steps []step) ([]byte, error) {
	for v := has; v < knows; v++ {
		var doc map[string]json.RawMessage
		if err := json.Unmarshal(data, &doc); err != nil {
			return nil, explain(data, err)
		}
		if err := steps[v-1](doc); err != nil {
			return nil, fmt.Errorf("version %d cannot become %d: %w", v, v+1, err)
		}
		doc["version"] = json.RawMessage(fmt.Sprint(v + 1))
		var err error
		if data, err = json.Marshal(doc); err != nil {
			return nil, err
		}
	}
	return data, nil
}

// strict decodes a document, which versionOf found to be one JSON value and no
// more, without unknown fields.
func strict(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return explain(data, err)
	}
	return nil
}

// explain says where a document breaks, by line.
func explain(data []byte, err error) error {
	var syntax *json.SyntaxError
	var typed *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &syntax) && syntax.Offset >= int64(len(data)):
		return errors.New("it is cut off at its end")
	case errors.As(err, &syntax):
		return fmt.Errorf("line %d: it is not JSON", lineAt(data, syntax.Offset))
	case errors.As(err, &typed):
		return fmt.Errorf("line %d: %q has the wrong type: %s", lineAt(data, typed.Offset), typed.Field, typed.Value)
	case strings.Contains(err.Error(), "unknown field"):
		return fmt.Errorf("it is not abl's: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: "))
}

func lineAt(data []byte, offset int64) int {
	return 1 + bytes.Count(data[:min(offset, int64(len(data)))], []byte("\n"))
}
