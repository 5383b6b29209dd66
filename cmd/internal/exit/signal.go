package exit

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// Signal is the cause of a context that a signal has ended. To errors.Is it
// equals context.Canceled.
type Signal struct{ Number syscall.Signal }

// Error says what ended the run and how to go on.
func (s Signal) Error() string {
	return fmt.Sprintf("interrupted by %s; what was reached is saved; run the same command again to go on", s.Name())
}

// Name is the signal's usual name.
func (s Signal) Name() string {
	switch s.Number {
	case syscall.SIGHUP:
		return "SIGHUP"
	case syscall.SIGINT:
		return "SIGINT"
	case syscall.SIGTERM:
		return "SIGTERM"
	}
	return s.Number.String()
}

// Code is the exit code of a process that the signal has ended.
func (s Signal) Code() int { return 128 + int(s.Number) }

// Is makes a Signal count as a cancellation.
func (s Signal) Is(target error) bool { return target == context.Canceled }

// Signals returns a context that the first SIGHUP, SIGINT or SIGTERM ends, with
// a Signal as its cause. A second SIGINT leaves the process at once, with a
// word on voice; whatever it leaves behind, the next run cleans up. From here
// on a reader that goes away ends no process: writing to it fails instead.
func Signals(ctx context.Context, voice io.Writer) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	// Not signal.Ignore: what is ignored stays so in child processes.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	got := make(chan os.Signal, 4)
	signal.Notify(got, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM)
	done := make(chan struct{})
	go watch(got, done, cancel, func() {
		fmt.Fprintln(voice, "\nabl: left at once; the next run cleans up")
		os.Exit(INT)
	})
	return ctx, sync.OnceFunc(func() {
		signal.Stop(got)
		signal.Stop(pipe)
		close(done)
		cancel(context.Canceled)
	})
}

// watch cancels on the first signal and leaves on a SIGINT after it.
func watch(got <-chan os.Signal, done <-chan struct{}, cancel context.CancelCauseFunc, leave func()) {
	ended := false
	for {
		select {
		case <-done:
			return
		case s := <-got:
			if ended && s == syscall.SIGINT {
				leave()
				return
			}
			number, _ := s.(syscall.Signal)
			cancel(Signal{number})
			ended = true
		}
	}
}
