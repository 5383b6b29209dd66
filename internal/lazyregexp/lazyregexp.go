// Package lazyregexp makes a regular expression when it is first used: every start of
// abl would pay for those of all its packages. Nothing else belongs here.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New returns what compiles expr once and panics when it is none.
func New(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
