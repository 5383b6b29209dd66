package environment

// Class is the category of an error, from which its exit code follows.
type Class string

// The classes of errors that have no other indication.
const (
	Usage       Class = "usage"       // the user's settings, keys or files are wrong
	Unavailable Class = "environment" // something on this machine is missing
	Refused     Class = "refused"     // a provider refuses, and would again
	Away        Class = "away"        // a provider does not respond now
	Person      Class = "person"      // the user has to decide
)

// Error is an error with its class.
type Error struct {
	Class Class
	Do    string // what the user can do about it, may be empty
	Err   error
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
