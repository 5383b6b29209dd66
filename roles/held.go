package roles

import (
	"context"
	"errors"
	"fmt"

	"abl/internal/sandbox"
)

// ErrHolder means that somebody ended the container that holds a network: what was to
// join it could not be made, started or proven.
var ErrHolder = errors.New("the container that holds a network was ended by somebody else")

// held puts ErrHolder in the place of an err whose cause it is. What stood in that
// network is not where it was meant to be, so err is told, and its kind is not.
func held(ctx context.Context, engine Engine, holder string, err error) error {
	if err == nil || holder == "" || errors.Is(err, ErrHolder) || errors.Is(err, context.Canceled) || !gone(context.WithoutCancel(ctx), engine, holder) {
		return err
	}
	return fmt.Errorf("%w: %s (%v)", ErrHolder, holder, err) //nolint:errorlint // its kind would be taken for the fault
}

// gone says that a box does not run any more.
func gone(ctx context.Context, engine Engine, name string) bool {
	st, err := engine.Status(ctx, name)
	return errors.Is(err, sandbox.ErrNotFound) || err == nil && st.State != sandbox.Running
}
