package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"abl/internal/hostfs"
	"abl/internal/redact"
)

// Damaged is the error for a state file that is damaged or was written by a newer abl. abl never
// overwrites such a file and exits with code 9.
type Damaged struct {
	Path string
	What string // the defect and the remedy
}

// Error returns the path, the defect and the remedy.
func (d *Damaged) Error() string { return fmt.Sprintf("cannot use state %q: %s", d.Path, d.What) }

// errNewer is the error for a file that a newer abl wrote.
var errNewer = errors.New("update abl")

// Load reads the state file at path and follows no links. It returns fs.ErrNotExist if the file
// does not exist and a *Damaged if it is incomplete or invalid.
func Load(path string) (*File, error) {
	const remedy = ": restore it from a backup, or move it away to start over"
	data, err := hostfs.Read(filepath.Dir(path), filepath.Base(path), MaxBytes)
	switch {
	case errors.Is(err, hostfs.ErrAbsent):
		return nil, fmt.Errorf("cannot find state %q: %w", path, fs.ErrNotExist)
	case errors.Is(err, hostfs.ErrNotRegular), errors.Is(err, hostfs.ErrTooLarge), errors.Is(err, hostfs.ErrChanged):
		return nil, &Damaged{path, err.Error() + remedy}
	case err != nil:
		return nil, fmt.Errorf("cannot read state %q: %w", path, err)
	}
	f, err := Decode(data)
	switch {
	case errors.Is(err, errNewer):
		return nil, &Damaged{path, err.Error()}
	case err != nil:
		return nil, &Damaged{path, err.Error() + remedy}
	}
	return f, nil
}

// Decode parses and checks the content of a state file. It reads the version first, so that it
// reports a newer file with unknown fields as newer, not as damaged.
func Decode(data []byte) (*File, error) {
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		return nil, errors.New("it is empty")
	case len(data) > MaxBytes:
		return nil, fmt.Errorf("it is larger than %d bytes", MaxBytes)
	}
	var head struct {
		Version *int `json:"version"`
	}
	switch err := json.Unmarshal(data, &head); {
	case err != nil:
		return nil, explain(data, err)
	case head.Version == nil || *head.Version < 1:
		return nil, errors.New("it has no valid version, so abl did not write it")
	case *head.Version > Version:
		return nil, fmt.Errorf("it has version %d, but this abl supports version %d: %w", *head.Version, Version, errNewer)
	}
	f, d := &File{}, json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(f); err != nil {
		return nil, explain(data, err)
	}
	return f, check(f)
}

// explain turns err, an error of encoding/json about data, into a message with the line number.
func explain(data []byte, err error) error {
	line := func(offset int64) int { return 1 + bytes.Count(data[:min(offset, int64(len(data)))], []byte("\n")) }
	var syntax *json.SyntaxError
	var typed *json.UnmarshalTypeError
	text := strings.TrimPrefix(err.Error(), "json: ")
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &syntax) && syntax.Offset >= int64(len(data)):
		return errors.New("the end is missing")
	case errors.As(err, &syntax):
		return fmt.Errorf("line %d: invalid JSON", line(syntax.Offset))
	case errors.As(err, &typed):
		return fmt.Errorf("line %d: %q has the wrong type: %s", line(typed.Offset), typed.Field, typed.Value)
	case strings.Contains(text, "unknown field"):
		return fmt.Errorf("abl did not write it: %s", text)
	}
	return errors.New(text)
}

// Save atomically replaces the state file at path. If it returns nil, the new state survives a
// power failure. Otherwise the old file is unchanged. It fails if Load would reject f. The caller
// sets f.Updated.
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

// encode returns f as indented JSON. It fails if f is invalid or larger than MaxBytes.
func encode(f *File) ([]byte, error) {
	if err := check(f); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(f); err != nil {
		return nil, err
	}
	data := []byte(redact.Whole(b.String())) // the same JSON, without control characters
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("it is larger than %d bytes", MaxBytes)
	}
	return data, nil
}

var projectID = regexp.MustCompile(`^[0-9a-f]{12}$`)

// check returns an error if abl cannot have written f.
func check(f *File) error {
	switch {
	case f.Version != Version || f.Phases == nil:
		return errors.New("version or phases are missing")
	case !projectID.MatchString(f.Project) || !filepath.IsAbs(f.Root):
		return fmt.Errorf("invalid project id %q or root %q", f.Project, f.Root)
	}
	for _, key := range slices.Sorted(maps.Keys(f.Phases)) {
		if n, err := strconv.Atoi(key); err != nil || n < 1 || strconv.Itoa(n) != key {
			return fmt.Errorf("%q is not a phase number", key)
		}
		if err := checkPhase(f.Phases[key]); err != nil {
			return fmt.Errorf("phase %s: %w", key, err)
		}
	}
	return nil
}

func checkPhase(p *Phase) error {
	if p == nil {
		return errors.New("it is null")
	}
	if !slices.Contains(Statuses(), p.Status) {
		return fmt.Errorf("status %q is unknown", p.Status)
	}
	calls := []string{p.Call}
	for _, r := range p.History {
		calls = append(calls, r.Call)
	}
	for _, call := range calls {
		if call != "" && (call[0] == '.' || filepath.Base(call) != call) {
			return fmt.Errorf("%q is not a valid call id", call)
		}
	}
	all := counts(p)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		most := int64(100_000) // more calls than abl ever makes
		if strings.HasSuffix(name, "_ms") || strings.HasSuffix(name, "_size") {
			most = 10 * 365 * 24 * 60 * 60 * 1000 // ten years
		}
		switch n := all[name]; {
		case n < 0:
			return fmt.Errorf("%s is negative", name)
		case n > most:
			return fmt.Errorf("%s is %d, want at most %d", name, n, most)
		}
	}
	if p.Iteration > p.Step {
		return fmt.Errorf("iteration is %d, want at most step, which is %d", p.Iteration, p.Step)
	}
	return nil
}

// counts returns the numbers of a phase by their JSON keys.
func counts(p *Phase) map[string]int64 {
	all := map[string]int64{
		"round":       int64(p.Round),
		"iteration":   int64(p.Iteration),
		"step":        int64(p.Step),
		"attempt":     int64(p.Attempt),
		"tries":       int64(p.Tries),
		"repeated":    int64(p.Repeated),
		"spec_size":   int64(p.SpecSize),
		"passed_size": int64(p.PassedSize),
	}
	if o := p.Outage; o != nil {
		all["outage.tries"], all["outage.used_ms"], all["outage.wait_ms"] = int64(o.Tries), o.UsedMS, o.WaitMS
	}
	for role, n := range p.Fallback {
		all["fallback."+role] = int64(n)
	}
	for i, r := range p.History {
		at := fmt.Sprintf("history[%d].", i)
		all[at+"round"], all[at+"iteration"] = int64(r.Round), int64(r.Iteration)
		all[at+"step"], all[at+"entries"] = int64(r.Step), int64(r.Entries)
	}
	return all
}
