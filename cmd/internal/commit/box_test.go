package commit

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"abl/cmd/internal/exit"
	"abl/images"
	"abl/internal/strictyaml"
	"abl/orchestrator/sandbox"
	"abl/roles"
)

// What goes wrong around a build has the exit code that the table says.
func TestSettle(t *testing.T) {
	for want, errs := range map[int][]error{
		exit.Usage:       {&strictyaml.Error{File: "f", Msg: "x", Hint: "do"}, images.ErrDockerfile},
		exit.Environment: {sandbox.ErrUnreachable, sandbox.ErrNoImage, images.ErrHelper, errors.New("the engine says no")},
		exit.Boundary:    {sandbox.ErrUnproven, sandbox.ErrWeak},
		exit.Person:      {roles.ErrSource},
		exit.Stuck:       {&exit.Error{Code: exit.Stuck}},
	} {
		for _, err := range errs {
			if got := rules().Code(settle(fmt.Errorf("about: %w", err))); got != want {
				t.Errorf("%v: exit code %d, want %d", err, got, want)
			}
		}
	}
	if hint := exit.Hint(settle(&strictyaml.Error{Hint: "do this"})); hint != "do this" {
		t.Errorf("hint %q", hint)
	}
	if err := settle(context.Canceled); !errors.Is(err, context.Canceled) || errors.As(err, new(*exit.Error)) {
		t.Errorf("a stop became %v", err)
	}
	if settle(nil) != nil {
		t.Error("nothing became an error")
	}
}
