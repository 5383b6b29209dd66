package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"abl/internal/hostfs"
	"abl/internal/state"
)

// maxBytes bounds a record, in bytes, and maxRecords the records of a phase.
const (
	maxBytes   = 64 << 20
	maxRecords = 10_000
)

// Dir returns the directory of the records of a phase.
func Dir(p state.Project, phase int) string {
	return filepath.Join(p.Reports(), fmt.Sprintf("phase%d", phase))
}

// Path returns the path of the record of an iteration.
func Path(p state.Project, phase, step int) string {
	return filepath.Join(Dir(p, phase), fmt.Sprintf("step-%d.json", step))
}

// Save writes a record durably. It replaces the record that a killed abl wrote for the same iteration.
func Save(p state.Project, r Record) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("internal error: %w", err)
	}
	path := Path(p, r.Phase, r.Step)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("cannot save the audit record: %w", err)
	}
	if err := hostfs.SweepTemps(filepath.Dir(path)); err != nil {
		return err
	}
	if err := hostfs.Write(path, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("cannot save the audit record: %w", err)
	}
	return nil
}

// Steps returns the iterations of a phase with a record, the oldest first.
func Steps(p state.Project, phase int) ([]int, error) {
	entries, err := hostfs.List(p.Reports(), filepath.Base(Dir(p, phase)), maxRecords)
	if errors.Is(err, hostfs.ErrAbsent) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list the audit records of phase %d: %w", phase, err)
	}
	var steps []int
	for _, e := range entries {
		var n int
		if _, err := fmt.Sscanf(e.Name, "step-%d.json", &n); err == nil && n > 0 && e.Name == fmt.Sprintf("step-%d.json", n) {
			steps = append(steps, n)
		}
	}
	slices.Sort(steps)
	return steps, nil
}

// Load reads the record of an iteration. It fails if the file is not a record of abl.
func Load(p state.Project, phase, step int) (r Record, err error) {
	path := Path(p, phase, step)
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot read the audit record %q: %w", p.Rel(path), err)
		}
	}()
	data, err := hostfs.Read(filepath.Dir(path), filepath.Base(path), maxBytes)
	if err != nil {
		return r, err
	}
	if r, err = Decode(data); err == nil && (r.Phase != phase || r.Step != step) {
		return Record{}, fmt.Errorf("it belongs to phase %d, step-%d", r.Phase, r.Step)
	}
	return r, err
}

// Decode reads a record from one JSON document. It reads the version first, so that the error for a
// record of a newer abl names it. It ignores the fields of older formats.
func Decode(data []byte) (r Record, err error) {
	var head struct {
		Version int `json:"version"`
	}
	switch err := json.Unmarshal(data, &head); {
	case err != nil:
		return r, fmt.Errorf("it is not an audit record: %w", err)
	case head.Version > Version:
		return r, fmt.Errorf("it has version %d, but this abl supports version %d: update abl", head.Version, Version)
	case head.Version != Version:
		return r, errors.New("it has no valid version")
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return Record{}, fmt.Errorf("it is not an audit record: %w", err)
	}
	return r, nil
}

// Last reads the newest record of a phase. It returns false without a record.
func Last(p state.Project, phase int) (Record, bool, error) {
	steps, err := Steps(p, phase)
	if err != nil || len(steps) == 0 {
		return Record{}, false, err
	}
	r, err := Load(p, phase, steps[len(steps)-1])
	return r, err == nil, err
}
