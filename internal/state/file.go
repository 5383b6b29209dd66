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
	"slices"
	"strconv"
	"strings"

	"abl/internal/hostfs"
	"abl/internal/lazyregexp"
	"abl/internal/redact"
)

// Damaged says that a state file cannot be trusted, or comes from a later abl. abl never
// overwrites one: a person must decide (exit code 9).
type Damaged struct {
	Path string
	What string // what is wrong with it, and what to do
}

// Error names the file, what is wrong and what to do.
func (d *Damaged) Error() string { return fmt.Sprintf("cannot use state %q: %s", d.Path, d.What) }

// errNewer is that a file comes from a later abl.
var errNewer = errors.New("update abl")

// Load reads a state file. Without one the error is fs.ErrNotExist; a file that
// is not a whole, valid state is a *Damaged. Links are not followed.
func Load(path string) (*File, error) {
	const anew = ": restore it from a backup, or move it away to begin anew"
	data, err := hostfs.Read(filepath.Dir(path), filepath.Base(path), MaxBytes)
	switch {
	case errors.Is(err, hostfs.ErrAbsent):
		return nil, fmt.Errorf("cannot find state %q: %w", path, fs.ErrNotExist)
	case errors.Is(err, hostfs.ErrNotRegular), errors.Is(err, hostfs.ErrTooLarge), errors.Is(err, hostfs.ErrChanged):
		return nil, &Damaged{path, err.Error() + anew}
	case err != nil:
		return nil, fmt.Errorf("cannot read state %q: %w", path, err)
	}
	f, err := Decode(data)
	switch {
	case errors.Is(err, errNewer):
		return nil, &Damaged{path, err.Error()}
	case err != nil:
		return nil, &Damaged{path, err.Error() + anew}
	}
	return f, nil
}

// Decode reads the content of a state file. The version is read by itself, so that a newer file
// with unknown fields is called newer and not damaged.
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
		return nil, errors.New("it has no valid version, so it is not abl's")
	case *head.Version > Version:
		return nil, fmt.Errorf("it has version %d, this abl knows %d: %w", *head.Version, Version, errNewer)
	}
	f, d := &File{}, json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(f); err != nil {
		return nil, explain(data, err)
	}
	return f, check(f)
}

// explain says where a document breaks, by line.
func explain(data []byte, err error) error {
	line := func(offset int64) int { return 1 + bytes.Count(data[:min(offset, int64(len(data)))], []byte("\n")) }
	var syntax *json.SyntaxError
	var typed *json.UnmarshalTypeError
	text := strings.TrimPrefix(err.Error(), "json: ")
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &syntax) && syntax.Offset >= int64(len(data)):
		return errors.New("it is cut off at its end")
	case errors.As(err, &syntax):
		return fmt.Errorf("line %d: it is not JSON", line(syntax.Offset))
	case errors.As(err, &typed):
		return fmt.Errorf("line %d: %q has the wrong type: %s", line(typed.Offset), typed.Field, typed.Value)
	case strings.Contains(text, "unknown field"):
		return fmt.Errorf("it is not abl's: %s", text)
	}
	return errors.New(text)
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
	data := []byte(redact.Whole(b.String())) // the same JSON, safe to look at
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("it is larger than %d bytes", MaxBytes)
	}
	return data, nil
}

var projectID = lazyregexp.New(`^[0-9a-f]{12}$`)

// check holds a document to what abl itself would have written.
func check(f *File) error {
	switch {
	case f.Version != Version || f.Phases == nil:
		return errors.New("it lacks its version or its phases")
	case !projectID().MatchString(f.Project) || !filepath.IsAbs(f.Root):
		return fmt.Errorf("%q at %q is no project of abl's", f.Project, f.Root)
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
			return fmt.Errorf("%q is not the name of a call", call)
		}
	}
	all := counts(p)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		most := int64(100_000) // more calls, or rounds of them, than abl has come to
		if strings.HasSuffix(name, "_ms") || strings.HasSuffix(name, "_size") {
			most = 10 * 365 * 24 * 60 * 60 * 1000 // ten years
		}
		switch n := all[name]; {
		case n < 0:
			return fmt.Errorf("%s is negative", name)
		case n > most:
			return fmt.Errorf("%s is %d, and abl never counts beyond %d", name, n, most)
		}
	}
	if p.Iteration > p.Step {
		return fmt.Errorf("iteration %d is beyond step %d, which counts them over all rounds", p.Iteration, p.Step)
	}
	return nil
}

// counts are the numbers of a phase by their names.
func counts(p *Phase) map[string]int64 {
	all := map[string]int64{
		"round": int64(p.Round), "iteration": int64(p.Iteration), "step": int64(p.Step), "attempt": int64(p.Attempt), "tries": int64(p.Tries),
		"repeated": int64(p.Repeated), "spec_size": int64(p.SpecSize), "passed_size": int64(p.PassedSize),
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
