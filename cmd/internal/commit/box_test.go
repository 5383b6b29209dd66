package commit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"abl/cmd/internal/exit"
	"abl/images"
	"abl/internal/sandbox"
	"abl/internal/strictyaml"
	"abl/orchestrator/codecommit"
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

// The folder of the Dockerfile is sent to the engine whole: nothing that is secret,
// or changes from run to run, lies in it.
func TestFolderOfTheDockerfile(t *testing.T) {
	for _, name := range []string{codecommit.V1, codecommit.V2} {
		p, err := codecommit.ProfileOf(name)
		if err != nil {
			t.Fatal(err)
		}
		files := slices.AppendSeq([]string{p.Query, p.Codebase, p.Stage, p.Yard, reportFile}, maps.Values(p.Keys))
		for _, file := range files {
			if strings.HasPrefix(file, path.Dir(dockerfile)+"/") {
				t.Errorf("%s lies beside %s", file, dockerfile)
			}
		}
	}
}
