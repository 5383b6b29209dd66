package exit

import (
	"context"
	"errors"

	"abl/internal/sandbox"
	"abl/roles/environment"
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

// Hint is what to do about err, "" when it is no Error or does not say.
func Hint(err error) string {
	var told *Error
	if errors.As(err, &told) {
		return told.Do
	}
	var classed *environment.Error
	if errors.As(err, &classed) {
		return classed.Do
	}
	if errors.Is(err, environment.ErrNetworks) {
		return "abl doctor --boundary shows what was found; with --allow-weak-network abl goes on, and every report says so"
	}
	return ""
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Rule says which exit code an error means.
type Rule struct {
	When func(error) bool
	Code int
}

// Is is the rule for an error and whatever wraps it.
func Is(target error, code int) Rule {
	return Rule{func(err error) bool { return errors.Is(err, target) }, code}
}

// As is the rule for a type of error and whatever wraps one.
func As[E error](code int) Rule {
	return Rule{func(err error) bool {
		var e E
		return errors.As(err, &e)
	}, code}
}

// Rules are asked in order; the first that applies decides.
type Rules []Rule

// Code is the exit code of err: nil is Passed, an *Error and a Signal bring
// their own, then the rules are asked, then those that every abl command
// shares. What nobody knows is a Bug.
func (r Rules) Code(err error) int {
	if err == nil {
		return Passed
	}
	var told *Error
	if errors.As(err, &told) {
		return told.Code
	}
	var s Signal
	if errors.As(err, &s) {
		return s.Code()
	}
	var classed *environment.Error
	if errors.As(err, &classed) {
		return map[environment.Class]int{environment.Usage: Usage, environment.Unavailable: Environment}[classed.Class]
	}
	for _, rule := range append(r[:len(r):len(r)], shared()...) {
		if rule.When(err) {
			return rule.Code
		}
	}
	return Bug
}

// Code is Rules.Code without rules of one's own.
func Code(err error) int { return Rules(nil).Code(err) }

func shared() Rules {
	return Rules{
		Is(sandbox.ErrWeak, Boundary),
		Is(sandbox.ErrUnreachable, Environment),
		Is(sandbox.ErrNoImage, Environment),
	}
}

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
