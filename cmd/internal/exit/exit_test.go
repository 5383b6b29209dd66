package exit_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"syscall"
	"testing"

	"abl/cmd/internal/exit"
	"abl/internal/sandbox"
)

func TestCode(t *testing.T) {
	wrap := func(err error) error { return fmt.Errorf("cannot go on: %w", err) }
	cases := []struct {
		name string
		err  error
		want int
	}{
		{"no-error", nil, 0},
		{"unknown", errors.New("x"), 1},
		{"cancelled-without-a-cause", context.Canceled, 1},
		{"hint", wrap(&exit.Error{Code: exit.Stuck, What: "stuck"}), 3},
		{"an-exit-error-wins-over-its-cause", &exit.Error{Code: exit.Budget, Err: sandbox.ErrNoImage}, 6},
		{"image-missing", wrap(sandbox.ErrNoImage), 7},
		{"engine-away", wrap(sandbox.ErrUnreachable), 7},
		{"engine-too-weak", wrap(sandbox.ErrWeak), 8},
		{"weak-and-away", errors.Join(sandbox.ErrUnreachable, sandbox.ErrWeak), 8},
		{"SIGINT", wrap(exit.Signal{Number: syscall.SIGINT}), 130},
		{"SIGTERM", exit.Signal{Number: syscall.SIGTERM}, 143},
		{"SIGHUP", exit.Signal{Number: syscall.SIGHUP}, 129},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := exit.Code(c.err); got != c.want {
				t.Errorf("exit code %d, want %d", got, c.want)
			}
		})
	}
}

func TestErrorIsOneLine(t *testing.T) {
	cause := errors.New("cause")
	e := &exit.Error{Code: 3, What: "phase 1 is stuck", Safe: "all work is committed", Do: "run abl logs", Err: cause}
	if got, want := e.Error(), "phase 1 is stuck; all work is committed"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := exit.Hint(fmt.Errorf("wrapped: %w", e)), "run abl logs"; got != want {
		t.Errorf("hint %q, want %q", got, want)
	}
	if got := exit.Hint(cause); got != "" {
		t.Errorf("hint of another error: got %q, want none", got)
	}
	if !errors.Is(e, cause) {
		t.Error("errors.Is with the cause: got false, want true")
	}
	if got := (&exit.Error{What: "short"}).Error(); got != "short" {
		t.Errorf("message: got %q, want %q", got, "short")
	}
	e = exit.With(exit.Usage, cause, "repair it")
	if got := e.Error(); got != "cause" || e.Code != exit.Usage || e.Do != "repair it" || !errors.Is(e, cause) {
		t.Errorf("With: got %q, code %d, hint %q, want %q, %d, %q", got, e.Code, e.Do, "cause", exit.Usage, "repair it")
	}
	if got := exit.Hint(exit.With(exit.Environment, e, "")); got != "repair it" {
		t.Errorf("hint of the cause: got %q, want %q", got, "repair it")
	}
}

func TestBecause(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	other := errors.New("disk full")
	ended := fmt.Errorf("cannot start the builder: %w", context.Canceled)
	if got := exit.Because(ctx, ended); got != ended {
		t.Errorf("before the signal: got %v, want %v", got, ended)
	}
	cancel(exit.Signal{Number: syscall.SIGTERM})
	if got := exit.Code(exit.Because(ctx, ended)); got != exit.TERM {
		t.Errorf("cancelled: exit code %d, want 143", got)
	}
	if got := exit.Because(ctx, other); got != other {
		t.Errorf("another failure after the signal: got %v, want %v", got, other)
	}
	if got := exit.Because(ctx, nil); got != nil {
		t.Errorf("success after the signal: got %v, want no error", got)
	}
	if !errors.Is(context.Cause(ctx), context.Canceled) {
		t.Errorf("cause of the context: got %v, want a cancellation", context.Cause(ctx))
	}
}

// docs/exit-codes.md has a row with the same text for every code, and no other rows.
func TestDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/exit-codes.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| (\d+) \| ([^|]+) \|`).FindAllStringSubmatch(string(page), -1)
	want := exit.Entries()
	if len(rows) != len(want) {
		t.Fatalf("rows of docs/exit-codes.md: got %d, want %d", len(rows), len(want))
	}
	for i, row := range rows {
		if row[1] != strconv.Itoa(want[i].Code) || row[2] != want[i].Meaning {
			t.Errorf("row of docs/exit-codes.md: got %s %q, want %d %q", row[1], row[2], want[i].Code, want[i].Meaning)
		}
	}
}
