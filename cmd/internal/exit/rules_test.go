package exit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"abl/cmd/internal/exit"
	"abl/images"
	"abl/internal/git"
	"abl/internal/hostfs"
	"abl/internal/ledger"
	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/internal/yamlfile"
	"abl/roles/call"
)

func TestExitCodes(t *testing.T) {
	_, noFile := os.Open(filepath.Join(t.TempDir(), "none"))
	trouble := errors.New("trouble")
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, exit.Passed},
		{trouble, exit.Bug},
		{state.ErrNone, exit.Usage},
		{&yamlfile.Error{File: "config.yaml", Msg: "wrong"}, exit.Usage},
		{images.ErrDockerfile, exit.Usage},
		{call.ErrAgent, exit.Agent},
		{call.ErrBudget, exit.Budget},
		{noFile, exit.Environment},
		{syscall.ENOSPC, exit.Environment},
		{&hostfs.ShortWrite{Written: 1, Of: 2, Err: io.ErrShortWrite}, exit.Environment},
		{context.DeadlineExceeded, exit.Environment},
		{images.ErrHelper, exit.Environment},
		{sandbox.ErrUnreachable, exit.Environment},
		{sandbox.ErrNoImage, exit.Environment},
		{exit.OnEngine(trouble), exit.Environment},
		{sandbox.ErrWeak, exit.Boundary},
		{&state.Damaged{}, exit.Person},
		{&ledger.Foreign{}, exit.Person},
		{git.ErrForeign, exit.Person},
		{hostfs.ErrHeld, exit.Busy},
		{exit.With(exit.Stuck, noFile, ""), exit.Stuck},
	} {
		err := c.err
		if err != nil {
			err = fmt.Errorf("cannot go on: %w", err)
		}
		if got := exit.Code(err); got != c.want {
			t.Errorf("%v: exit code %d, want %d", c.err, got, c.want)
		}
		// Work on the engine can also fail for any of these reasons.
		if got := exit.Code(exit.OnEngine(err)); c.err != trouble && got != c.want {
			t.Errorf("on the engine, %v: exit code %d, want %d", c.err, got, c.want)
		}
	}
}

func TestHints(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{errors.New("trouble"), ""},
		{&yamlfile.Error{Hint: "repair it"}, "repair it"},
		{exit.With(exit.Usage, &yamlfile.Error{Hint: "repair it"}, "do that"), "do that"},
		{call.ErrAgent, "everything is saved; abl logs shows the calls; run the same command again to retry"},
		{fs.ErrPermission, "check who owns the file and its folder: an earlier run as root may have created it"},
		{fmt.Errorf("%w: %w", sandbox.ErrUnreachable, syscall.EACCES), ""},
		{syscall.ENOSPC, "free disk space, then run the same command again"},
		{&hostfs.ShortWrite{Written: 1, Of: 2, Err: io.ErrShortWrite}, "free disk space, then run the same command again"},
	} {
		if got := exit.Hint(fmt.Errorf("cannot go on: %w", c.err)); got != c.want {
			t.Errorf("%v: hint %q, want %q", c.err, got, c.want)
		}
	}
}

func TestUntil(t *testing.T) {
	back := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		err  error
		want time.Time
	}{
		{nil, time.Time{}},
		{call.ErrAgent, time.Time{}},
		{fmt.Errorf("cannot go on: %w", call.Unavailable{Back: back}), back},
	} {
		t.Run(fmt.Sprint(c.err), func(t *testing.T) {
			if got := exit.Until(c.err); !got.Equal(c.want) {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
