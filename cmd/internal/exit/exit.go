// Package exit has the exit codes of abl and their meanings, the rules that map an error to an exit
// code and a hint (rules.go), and the handling of the signals that end a run.
package exit

import (
	"context"
	"errors"

	"abl/internal/sandbox"
)

// The exit codes. After any of them but Bug and Usage, the same command resumes where it stopped.
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
		{Person, "you must decide: state damaged or from a newer abl, history or tree changed by hand, " +
			"or a spec edited while its phase runs"},
		{Busy, "another abl works on the project"},
		{Away, "the provider refused or was unavailable for too long; try again later"},
		{HUP, "terminated by SIGHUP; state saved"},
		{INT, "interrupted; state saved"},
		{TERM, "terminated; state saved"},
	}
}

// EntriesOf returns the exit codes of a program for which some of them mean something else. An empty
// meaning omits a code.
func EntriesOf(own map[int]string) (all []Entry) {
	for _, e := range Entries() {
		if meaning, is := own[e.Code]; is {
			e.Meaning = meaning
		}
		if e.Meaning != "" {
			all = append(all, e)
		}
	}
	return all
}

// Error is an error with an exit code. Main prints What and Safe on one line, and Do as a hint on the
// next.
type Error struct {
	Code int
	What string // lower case, no full stop
	Safe string // what abl saved; may be empty
	Do   string // what the user can do; may be empty
	Err  error  // the cause, for errors.Is and errors.As; not printed
}

// With returns err with an exit code and a hint. If do is empty it keeps the hint of err.
func With(code int, err error, do string) *Error {
	if do == "" {
		do = Hint(err)
	}
	return &Error{Code: code, What: err.Error(), Do: do, Err: err}
}

// Error returns What and Safe on one line.
func (e *Error) Error() string {
	if e.Safe == "" {
		return e.What
	}
	return e.What + "; " + e.Safe
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Because returns the signal that ended ctx if err only reports that ctx ended, or that the engine
// could not be reached meanwhile. Otherwise it returns err.
func Because(ctx context.Context, err error) error {
	s, signalled := errors.AsType[Signal](context.Cause(ctx))
	if signalled && (errors.Is(err, context.Canceled) || errors.Is(err, sandbox.ErrUnreachable)) {
		return s
	}
	return err
}

// outside marks an error of work on the engine. Unless another rule applies, its exit code is
// Environment, not Bug.
type outside struct{ error }

func (o outside) Unwrap() error { return o.error }

// OnEngine marks err as an error of work on the engine. It returns nil for nil.
func OnEngine(err error) error {
	if err == nil {
		return nil
	}
	return outside{err}
}
