package sandbox

import (
	"fmt"
	"slices"
	"strings"
)

// Check is one thing that was looked at: as it should be, and as it was found.
type Check struct {
	Name string `json:"name"`
	Want string `json:"want"` // "" for nothing at all
	Got  string `json:"got"`
	OK   bool   `json:"ok"`
	Weak bool   `json:"weak,omitempty"` // it does not hold, and the person allowed that (--allow-weak-network)
}

// Proof is what was looked at to see that a boundary stands. An empty one
// proves nothing.
type Proof []Check

// Same checks that what was found is what should be.
func Same(name, want, got string) Check {
	return Check{Name: name, Want: want, Got: got, OK: want == got}
}

// Failed are the checks that did not hold and had to.
func (p Proof) Failed() Proof {
	return slices.DeleteFunc(slices.Clone(p), func(c Check) bool { return c.OK || c.Weak })
}

// Get is the check of this name.
func (p Proof) Get(name string) (Check, bool) {
	for _, c := range p {
		if c.Name == name {
			return c, true
		}
	}
	return Check{}, false
}

// Err is nil when all that was looked at holds, and something was. Otherwise it
// wraps ErrUnproven and names what does not.
func (p Proof) Err() error {
	failed := p.Failed()
	switch {
	case len(p) == 0:
		return fmt.Errorf("%w: nothing was checked", ErrUnproven)
	case len(failed) == 0:
		return nil
	}
	first := failed[0]
	says := fmt.Sprintf("%s is %q, and should be %q", first.Name, first.Got, first.Want)
	if first.Want == "" {
		says = fmt.Sprintf("%s: %s, and there should be none", first.Name, first.Got)
	}
	var more []string
	for _, c := range failed[1:] {
		more = append(more, c.Name)
	}
	if len(more) > 0 {
		says += "; " + strings.Join(more, ", ") + " as well"
	}
	return fmt.Errorf("%w: %s", ErrUnproven, says)
}
