package exit

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Signal is the cause of a context that a signal has ended. errors.Is reports that it is
// context.Canceled.
type Signal struct{ Number syscall.Signal }

// Error names the signal and how to resume.
func (s Signal) Error() string {
	return fmt.Sprintf("interrupted by %s; everything is saved; run the same command again to resume", s.Name())
}

// Name returns the signal's name, such as SIGINT.
func (s Signal) Name() string { return unix.SignalName(s.Number) }

// Code returns the exit code of a process that the signal ended.
func (s Signal) Code() int { return 128 + int(s.Number) }

// Is reports whether target is context.Canceled.
func (s Signal) Is(target error) bool { return target == context.Canceled }

// Signals returns a context that the first SIGHUP, SIGINT or SIGTERM ends, with a Signal as its cause.
// A second SIGINT, at least a second later, prints a line on stderr and exits immediately; the next
// run cleans up. Signals also catches SIGPIPE, so that writing to a closed pipe fails instead of
// ending the process.
func Signals(ctx context.Context, stderr io.Writer) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	// Not signal.Ignore: child processes would inherit it.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	got := make(chan os.Signal, 4)
	signal.Notify(got, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM)
	c := &canceler{whole: cancel}
	go c.watch(got, stderr)
	return context.WithValue(ctx, cancelerKey{}, c), sync.OnceFunc(func() {
		signal.Stop(got)
		signal.Stop(pipe)
		close(got)
		cancel(context.Canceled)
	})
}

// Part returns a context for a part of the run. Until its cancel function is called, a SIGINT ends
// only the part, and a second SIGINT exits immediately. If ctx does not come from Signals, Part only
// returns a context with a cancel function.
func Part(ctx context.Context) (context.Context, context.CancelFunc) {
	part, cancel := context.WithCancelCause(ctx)
	c, ok := ctx.Value(cancelerKey{}).(*canceler)
	if ok {
		c.setPart(cancel)
	}
	return part, func() {
		if ok {
			c.setPart(nil)
		}
		cancel(context.Canceled)
	}
}

type cancelerKey struct{}

// canceler ends the run, or a part of it, on a signal.
type canceler struct {
	whole context.CancelCauseFunc

	mu        sync.Mutex
	ended     bool                    // the run was ended
	part      context.CancelCauseFunc // ended by a SIGINT instead of the run; may be nil
	partEnded bool                    // the part was ended
	last      time.Time               // the last SIGINT that counted
}

// repeatTime is how long further SIGINTs count as the first one: GNU timeout sends one to the process
// and one to its group, and a held key sends many.
const repeatTime = time.Second

func (c *canceler) setPart(part context.CancelCauseFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.part, c.partEnded, c.last = part, false, time.Time{}
}

// watch handles signals, and exits on a second SIGINT.
func (c *canceler) watch(got <-chan os.Signal, stderr io.Writer) {
	for s := range got {
		if number, _ := s.(syscall.Signal); c.handle(number) {
			fmt.Fprintln(stderr, "\nabl: stopped immediately; the next run cleans up")
			os.Exit(INT)
		}
	}
}

// handle ends the part or the run. It returns true if a second SIGINT asks to exit immediately.
func (c *canceler) handle(s syscall.Signal) (exit bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s == syscall.SIGINT {
		if !c.last.IsZero() && time.Since(c.last) < repeatTime {
			return false
		}
		c.last = time.Now()
	}
	switch {
	case s == syscall.SIGINT && (c.ended || c.partEnded):
		return true
	case s == syscall.SIGINT && c.part != nil:
		c.partEnded = true
		c.part(Signal{s})
	default:
		c.ended = true
		c.whole(Signal{s})
	}
	return false
}
