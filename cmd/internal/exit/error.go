package exit

import (
	"context"
	"errors"

	"abl/internal/sandbox"
)

// Error is an end that is not a pass: what happened and what is safe in one
// line, and what to do about it, which is shown on a line of its own.
type Error struct {
	Code int
	What string // lower case, no full stop
	Safe string // may be empty
	Do   string // may be empty
	Err  error  // the cause, for those who inspect; it is not printed
}

// With gives err an exit code and says what to do about it, which is what err
// says itself when do is empty.
func With(code int, err error, do string) *Error {
	if do == "" {
		do = Hint(err)
	}
	return &Error{Code: code, What: err.Error(), Do: do, Err: err}
}

// Error is the one line.
func (e *Error) Error() string {
	if e.Safe == "" {
		return e.What
	}
	return e.What + "; " + e.Safe
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Because puts the signal that ended ctx in the place of an err that only says
// that ctx ended, or that the engine could not be told so; any other err is
// returned as it is.
func Because(ctx context.Context, err error) error {
	var s Signal
	if (errors.Is(err, context.Canceled) || errors.Is(err, sandbox.ErrUnreachable)) && errors.As(context.Cause(ctx), &s) {
		return s
	}
	return err
}

// outside is an error of work on the engine: unless it is known better, the
// environment failed and not abl.
type outside struct{ error }

func (o outside) Unwrap() error { return o.error }

// OnEngine marks the error of work on the engine, if there is one.
func OnEngine(err error) error {
	if err == nil {
		return nil
	}
	return outside{err}
}
