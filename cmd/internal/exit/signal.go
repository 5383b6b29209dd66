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

// Signal is the cause of a context that a signal has ended. To errors.Is it
// equals context.Canceled.
type Signal struct{ Number syscall.Signal }

// Error says what ended the run and how to go on.
func (s Signal) Error() string {
	return fmt.Sprintf("interrupted by %s; what was reached is saved; run the same command again to resume", s.Name())
}

// Name is the signal's usual name.
func (s Signal) Name() string { return unix.SignalName(s.Number) }

// Code is the exit code of a process that the signal has ended.
func (s Signal) Code() int { return 128 + int(s.Number) }

// Is makes a Signal count as a cancellation.
func (s Signal) Is(target error) bool { return target == context.Canceled }

// Signals returns a context that the first SIGHUP, SIGINT or SIGTERM ends, with
// a Signal as its cause. A second SIGINT, unless it comes with the first, leaves
// the process at once, with a word on voice; whatever it leaves behind, the next
// run cleans up. From here on a reader that goes away ends no process: writing to
// it fails instead.
func Signals(ctx context.Context, voice io.Writer) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	// Not signal.Ignore: what is ignored stays so in child processes.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	got := make(chan os.Signal, 4)
	signal.Notify(got, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM)
	aim := &aim{whole: cancel}
	go aim.watch(got, voice)
	return context.WithValue(ctx, aimKey{}, aim), sync.OnceFunc(func() {
		signal.Stop(got)
		signal.Stop(pipe)
		close(got)
		cancel(context.Canceled)
	})
}

// Part returns a context for a part of the run that is more than it: as long as
// it is on, a SIGINT ends the part alone, and a second one leaves at once. Where
// ctx is not of Signals it is a context like any other.
func Part(ctx context.Context) (context.Context, context.CancelFunc) {
	part, cancel := context.WithCancelCause(ctx)
	a, ok := ctx.Value(aimKey{}).(*aim)
	if ok {
		a.take(cancel)
	}
	return part, func() {
		if ok {
			a.take(nil)
		}
		cancel(context.Canceled)
	}
}

type aimKey struct{}

// aim is what a signal ends.
type aim struct {
	whole context.CancelCauseFunc

	mu    sync.Mutex
	over  bool                    // the whole was ended, and is tidying up
	part  context.CancelCauseFunc // what a SIGINT ends instead, nil for nothing
	ended bool                    // likewise the part
	since time.Time               // the last SIGINT that ended something
}

// sameWish is how long a further SIGINT means what the first did: GNU timeout
// sends one to the process and one to its group, and a held key sends many.
const sameWish = time.Second

func (a *aim) take(part context.CancelCauseFunc) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.part, a.ended, a.since = part, false, time.Time{} // the first wish is fulfilled
}

// watch cancels on the first signal and leaves on a SIGINT after it.
func (a *aim) watch(got <-chan os.Signal, voice io.Writer) {
	for s := range got {
		if number, _ := s.(syscall.Signal); a.hit(number) {
			fmt.Fprintln(voice, "\nabl: left at once; the next run cleans up")
			os.Exit(INT)
		}
	}
}

// hit ends what a signal is aimed at; leave is true when that was ended already
// and the person does not want to wait.
func (a *aim) hit(s syscall.Signal) (leave bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s == syscall.SIGINT {
		if !a.since.IsZero() && time.Since(a.since) < sameWish {
			return false
		}
		a.since = time.Now()
	}
	switch {
	case s == syscall.SIGINT && (a.over || a.ended):
		return true
	case s == syscall.SIGINT && a.part != nil:
		a.ended = true
		a.part(Signal{s})
	default:
		a.over = true
		a.whole(Signal{s})
	}
	return false
}
