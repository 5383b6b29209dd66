package gitdir

import (
	"errors"
	"fmt"
)

// ErrForeign marks a repository in a state that a person must decide about.
// The message of an error that Is this says what and what to do.
var ErrForeign = errors.New("the history needs a person's decision")

type foreign string

func (f foreign) Error() string        { return string(f) }
func (f foreign) Is(target error) bool { return target == ErrForeign }

// Foreign is an error that Is ErrForeign.
func Foreign(format string, args ...any) error { return foreign(fmt.Sprintf(format, args...)) }
