package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"abl/internal/hostfs"
	"abl/internal/redact"
)

// Damaged says that a state file cannot be trusted. abl never overwrites one:
// a person must decide (exit code 9).
type Damaged struct {
	Path string
	What string // what is wrong with it
}

// Error names the file, what is wrong and what to do.
func (d *Damaged) Error() string {
	return fmt.Sprintf("cannot use state %q: %s: restore it from a backup, or move it away to begin anew", d.Path, d.What)
}

// Newer says that a state file comes from a later abl.
type Newer struct {
	Path  string
	Has   int // version of the file
	Knows int // version of this abl
}

// Error names both versions and what to do.
func (n *Newer) Error() string {
	return fmt.Sprintf("cannot use state %q: it has version %d, this abl knows %d: update abl", n.Path, n.Has, n.Knows)
}

// Load reads a state file. Without one the error is fs.ErrNotExist; a file that
// is not a whole, valid state is a *Damaged or a *Newer. Links are not followed.
func Load(path string) (*File, error) {
	data, err := read(path)
	if err != nil {
		return nil, err
	}
	f, err := decode(data, Version, steps)
	var newer *Newer
	switch {
	case errors.As(err, &newer):
		newer.Path = path
		return nil, newer
	case err != nil:
		return nil, &Damaged{Path: path, What: err.Error()}
	}
	return f, nil
}

func read(path string) ([]byte, error) {
	data, err := hostfs.Read(filepath.Dir(path), filepath.Base(path), MaxBytes)
	switch {
	case errors.Is(err, hostfs.ErrAbsent):
		return nil, fmt.Errorf("cannot find state %q: %w", path, fs.ErrNotExist)
	case errors.Is(err, hostfs.ErrNotRegular):
		return nil, &Damaged{Path: path, What: "it is not a regular file, or reached over a link"}
	case errors.Is(err, hostfs.ErrTooLarge):
		return nil, &Damaged{Path: path, What: fmt.Sprintf("it is larger than %d bytes", MaxBytes)}
	case errors.Is(err, hostfs.ErrChanged):
		return nil, &Damaged{Path: path, What: "it changed while it was read"}
	case err != nil:
		return nil, fmt.Errorf("cannot read state %q: %w", path, err)
	}
	return data, nil
}

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
