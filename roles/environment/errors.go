package environment

import "errors"

// Class says whose matter an error is.
type Class string

// The classes of errors that do not say it by themselves.
const (
	Usage       Class = "usage"       // the person's: settings, keys, files
	Unavailable Class = "environment" // something on this machine is missing
	Refused     Class = "refused"     // a provider says no, and would again
	Away        Class = "away"        // a provider does not answer now
	Person      Class = "person"      // somebody has to look first
)

// Error is an error with its class.
type Error struct {
	Class Class
	Do    string // what a person can do about it, may be empty
	Err   error
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Err }

// ErrNetworks means that the engine's networks are not proven to keep containers
// from this machine.
var ErrNetworks = errors.New("cannot keep the roles' containers from this machine")
