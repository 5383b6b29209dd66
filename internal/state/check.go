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
	for _, c := range counts(p) {
		switch {
		case c.value < 0:
			return fmt.Errorf("%s is negative", c.name)
		case c.value > c.most:
			return fmt.Errorf("%s is %d, and abl never counts beyond %d", c.name, c.value, c.most)
		}
	}
	if p.Iteration > p.Step {
		return fmt.Errorf("iteration %d is beyond step %d, which counts them over all rounds", p.Iteration, p.Step)
	}
	return nil
}

// Beyond these a number is none that abl has come to.
const (
	maxCount = 100_000                        // calls, or rounds of them
	maxMS    = 10 * 365 * 24 * 60 * 60 * 1000 // ten years
)

type count struct {
	name        string
	value, most int64
}

func counts(p *Phase) []count {
	few := func(name string, n int) count { return count{name, int64(n), maxCount} }
	all := []count{
		few("round", p.Round), few("iteration", p.Iteration), few("step", p.Step), few("attempt", p.Attempt), few("tries", p.Tries), few("repeated", p.Repeated),
		{"spec_size", int64(p.SpecSize), MaxBytes}, {"passed_size", int64(p.PassedSize), MaxBytes},
	}
	if o := p.Outage; o != nil {
		all = append(all, few("outage.tries", o.Tries), count{"outage.used_ms", o.UsedMS, maxMS}, count{"outage.wait_ms", o.WaitMS, maxMS})
	}
	for role, n := range p.Fallback {
		all = append(all, few("fallback."+role, n))
	}
	for i, r := range p.History {
		at := fmt.Sprintf("history[%d].", i)
		all = append(all, few(at+"round", r.Round), few(at+"iteration", r.Iteration), few(at+"step", r.Step), few(at+"entries", r.Entries))
	}
	return all
}
