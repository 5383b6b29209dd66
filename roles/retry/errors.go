// Package retry decides what comes of a call that did not end properly: which outcome
// stops the run, and how a transient failure of a provider or an engine is waited out.
// It is the same for everybody who makes calls, and makes none itself.
package retry

import (
	"errors"
	"fmt"

	"abl/internal/outcome"
)

// ErrAgent means that an agent did not end properly, and neither when it was tried again.
var ErrAgent = errors.New("the agent failed")

// ErrUnavailable means that the provider limits the rate or does not answer.
var ErrUnavailable = errors.New("the provider is away")

// ErrBudget means that the gateway admitted no further request of a call.
var ErrBudget = errors.New("the budget is reached")

// ErrLogin means that the provider refuses the key.
var ErrLogin = errors.New("the provider refused the login")

// ErrModel means that the provider does not have the model.
var ErrModel = errors.New("there is no such model")

// ErrDenied means that the agent asks for what abl's own gateway lets nobody ask for.
var ErrDenied = errors.New("the agent asks for what it may not have")

// ErrUnproven means that the boundary of a call was not proven and its container ran.
var ErrUnproven = errors.New("a call was ended, since where it ran is not proven")

// Stops is the error of an end that neither waiting nor repeating can mend, nil
// for any other.
func Stops(c outcome.Outcome, why string) error {
	switch c {
	case outcome.OverBudget:
		return fmt.Errorf("%w: %s", ErrBudget, why)
	case outcome.Unproven:
		return fmt.Errorf("%w: %s", ErrUnproven, why)
	case outcome.Refused:
		return fmt.Errorf("%w: %s", ErrLogin, why)
	case outcome.NoModel:
		return fmt.Errorf("%w: %s", ErrModel, why)
	case outcome.Denied:
		return fmt.Errorf("%w: %s", ErrDenied, why)
	case outcome.TooLarge:
		return fmt.Errorf("%w: the prompt is longer than the model takes: %s", ErrAgent, why)
	}
	return nil
}
