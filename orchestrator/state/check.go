package state

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

var projectID = regexp.MustCompile(`^[0-9a-f]{12}$`)

// check holds a document to what abl itself would have written.
func check(f *File, version int) error {
	switch {
	case f.Version != version:
		return fmt.Errorf("its version is %d, want %d", f.Version, version)
	case !projectID.MatchString(f.Project):
		return fmt.Errorf("project %q is not an id of 12 hex digits", f.Project)
	case !filepath.IsAbs(f.Root):
		return fmt.Errorf("root %q is not an absolute path", f.Root)
	case f.Phases == nil:
		return fmt.Errorf("it has no phases")
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
		return fmt.Errorf("it is null")
	}
	if !slices.Contains(Statuses(), p.Status) {
		return fmt.Errorf("status %q is unknown", p.Status)
	}
	type count struct {
		name  string
		value int64
	}
	counts := []count{
		{"round", int64(p.Round)}, {"iteration", int64(p.Iteration)}, {"step", int64(p.Step)},
		{"attempt", int64(p.Attempt)}, {"tries", int64(p.Tries)}, {"spec_size", int64(p.SpecSize)}, {"passed_size", int64(p.PassedSize)},
	}
	if o := p.Outage; o != nil {
		counts = append(counts, count{"outage.tries", int64(o.Tries)}, count{"outage.used_ms", o.UsedMS}, count{"outage.wait_ms", o.WaitMS})
	}
	for role, n := range p.Fallback {
		counts = append(counts, count{"fallback." + role, int64(n)})
	}
	for _, c := range counts {
		if c.value < 0 {
			return fmt.Errorf("%s is negative", c.name)
		}
	}
	return nil
}
