// Package lazyregexp makes a regular expression when it is first used: every start of
// abl would pay for those of all its packages. Nothing else belongs here.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New returns a function that compiles expr on its first call. That call panics if expr is invalid.
func New(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
