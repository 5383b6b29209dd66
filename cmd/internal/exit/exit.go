// Package exit holds the exit codes of abl: the one table from which help
// texts, documentation and the process itself take them, which error means which
// (rules.go), and the signals that end a run. Nothing of a run is decided here.
package exit

import (
	"context"
	"errors"

	"abl/internal/sandbox"
)

// The exit codes. All but Bug and Usage leave something that the same command
// can go on from.
const (
	Passed      = 0
	Bug         = 1
	Usage       = 2
	Stuck       = 3
	Unverified  = 4
	Agent       = 5
	Budget      = 6
	Environment = 7
	Boundary    = 8
	Person      = 9
	Busy        = 11
	Away        = 75
	HUP         = 129
	INT         = 130
	TERM        = 143
)

// Entry is one row of the table.
type Entry struct {
	Code    int
	Meaning string
}

// Entries are all exit codes of abl, in ascending order.
func Entries() []Entry {
	return []Entry{
		{Passed, "passed"},
		{Bug, "unexpected error (a bug)"},
		{Usage, "usage, config or spec error; no further call was started"},
		{Stuck, "stuck: contracts still fail"},
		{Unverified, "unverified: no believable verdict"},
		{Agent, "the agent failed: login refused, or crash, memory or time after retries"},
		{Budget, "budget reached"},
		{Environment, "the environment failed: engine, image, disk or network"},
		{Boundary, "the boundary around the agents could not be established"},
		{Person, "you must decide: state damaged or from a newer abl, history or tree changed by hand, or a spec edited while its phase runs"},
		{Busy, "another abl holds the project"},
		{Away, "the provider refused or was away for too long; try again later"},
		{HUP, "hung up; state saved"},
		{INT, "interrupted; state saved"},
		{TERM, "terminated; state saved"},
	}
}

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
	s, signalled := errors.AsType[Signal](context.Cause(ctx))
	if signalled && (errors.Is(err, context.Canceled) || errors.Is(err, sandbox.ErrUnreachable)) {
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
