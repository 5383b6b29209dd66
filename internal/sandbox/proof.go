package sandbox

import (
	"fmt"
	"slices"
	"strings"
)

// Check is one comparison of an intended with an actual value.
type Check struct {
	Name string `json:"name"`
	Want string `json:"want"` // "" if the value should not exist
	Got  string `json:"got"`
	OK   bool   `json:"ok"`
	Weak bool   `json:"weak,omitempty"` // it failed, but the user allowed that (--allow-weak-network)
}

// Proof is the list of checks of a boundary. An empty one proves nothing.
type Proof []Check

// Same returns the check that got equals want.
func Same(name, want, got string) Check {
	return Check{
		Name: name,
		Want: want,
		Got:  got,
		OK:   want == got,
	}
}

// Failed returns the checks that failed and were not allowed to.
func (p Proof) Failed() Proof {
	return slices.DeleteFunc(slices.Clone(p), func(c Check) bool { return c.OK || c.Weak })
}

// Weak returns the names of the checks that failed and were allowed to.
func (p Proof) Weak() string {
	var names []string
	for _, c := range p {
		if c.Weak {
			names = append(names, c.Name)
		}
	}
	return strings.Join(names, ", ")
}

// Get returns the check with this name.
func (p Proof) Get(name string) (Check, bool) {
	for _, c := range p {
		if c.Name == name {
			return c, true
		}
	}
	return Check{}, false
}

// Err returns nil if there are checks and none failed. Otherwise it returns an ErrUnproven that
// describes the first failed check and names the others.
func (p Proof) Err() error {
	failed := p.Failed()
	switch {
	case len(p) == 0:
		return fmt.Errorf("%w: nothing was checked", ErrUnproven)
	case len(failed) == 0:
		return nil
	}
	first := failed[0]
	says := fmt.Sprintf("%s is %q, want %q", first.Name, first.Got, first.Want)
	if first.Want == "" {
		says = fmt.Sprintf("%s: got %s, want none", first.Name, first.Got)
	}
	var more []string
	for _, c := range failed[1:] {
		more = append(more, c.Name)
	}
	if len(more) > 0 {
		says += "; also failed: " + strings.Join(more, ", ")
	}
	return fmt.Errorf("%w: %s", ErrUnproven, says)
}
