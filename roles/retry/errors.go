// Package retry decides what comes of a call that did not end properly: which outcome
// stops the run, and how a transient failure of a provider or an engine is waited out.
// It is the same for everybody who makes calls, and makes none itself.
package retry

import (
	"errors"
	"fmt"

	"abl/internal/outcome"
)

// The errors that end a run.
var (
	// ErrAgent: an agent did not end properly, and neither when it was tried again.
	ErrAgent = errors.New("the agent failed")
	// ErrUnavailable: the provider limits the rate or does not answer.
	ErrUnavailable = errors.New("the provider is away")
	// ErrBudget: the gateway admitted no further request of a call.
	ErrBudget = errors.New("the budget is reached")
	// ErrLogin: the provider refuses the key.
	ErrLogin = errors.New("the provider refused the login")
	// ErrModel: the provider does not have the model.
	ErrModel = errors.New("there is no such model")
	// ErrDenied: the agent asks for what abl's own gateway lets nobody ask for.
	ErrDenied = errors.New("the agent asks for what it may not have")
	// ErrUnproven: the boundary of a call was not proven and its container ran.
	ErrUnproven = errors.New("a call was ended, since where it ran is not proven")
)

// stops are the ends that neither waiting nor repeating can mend.
var stops = map[outcome.Outcome]error{
	outcome.OverBudget: ErrBudget, outcome.Unproven: ErrUnproven, outcome.Refused: ErrLogin, outcome.NoModel: ErrModel, outcome.Denied: ErrDenied,
	outcome.TooLarge: fmt.Errorf("%w: the prompt is longer than the model takes", ErrAgent),
}

// Stops is the error of an end that neither waiting nor repeating can mend, nil
// for any other.
func Stops(c outcome.Outcome, why string) error {
	if err := stops[c]; err != nil {
		return fmt.Errorf("%w: %s", err, why)
	}
	return nil
}
