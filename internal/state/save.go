package state

import (
	"bytes"
	"encoding/json"
	"fmt"

	"abl/internal/hostfs"
	"abl/internal/redact"
)

// Save replaces the state file whole; when it returns nil the new state survives
// a power cut, otherwise the old one is intact. A state that Load would refuse is
// not written. Updated is the caller's to set.
func Save(path string, f *File) error {
	data, err := encode(f)
	if err != nil {
		return fmt.Errorf("cannot save state %q: internal error: %w", path, err)
	}
	if err := hostfs.Write(path, data, 0o644); err != nil {
		return fmt.Errorf("cannot save state: %w", err)
	}
	return nil
}

// encode writes a state so that a person can read it and a diff stays small.
func encode(f *File) ([]byte, error) {
	if err := check(f, Version); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(f); err != nil {
		return nil, err
	}
	data := []byte(redact.Whole(b.String())) // the same JSON, safe to look at
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("it is larger than %d bytes", MaxBytes)
	}
	return data, nil
}
