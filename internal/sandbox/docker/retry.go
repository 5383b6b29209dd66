package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/client"

	"abl/internal/proc"
	"abl/internal/sandbox"
	"abl/internal/wording"
)

const (
	short      = 30 * time.Second // a call that only asks or notes
	long       = 2 * time.Minute  // a call that starts or tears down: 30 starts at once take seconds, a busy disk more
	copyTime   = 10 * time.Minute // a whole tree on a slow disk
	endless    = 24 * time.Hour   // a call on images, whose caller knows how long it may take
	tries      = 4
	firstPause = 100 * time.Millisecond

	longestPause = 2 * time.Second
)

// do makes a call that only asks, or that does no more the second time: under a
// deadline of its own, and again while only the transport fails.
func (e *conn) do(ctx context.Context, limit time.Duration, call func(context.Context) error) error {
	return e.change(ctx, limit, call, func(context.Context) (bool, error) { return false, nil })
}

// get asks for one thing by its name, for a list by its options, or for what is made
// unless it is there.
func get[By, T any](ctx context.Context, e *conn, call func(context.Context, By) (T, error), by By) (found T, err error) {
	err = e.do(ctx, short, func(ctx context.Context) (err error) {
		found, err = call(ctx, by)
		return err
	})
	return found, err
}

// change makes a call that changes something. Where its answer is lost or doubtful, done asks
// the engine what came of it before the call is made again: it may have been
// carried out, and some do more the second time.
func (e *conn) change(ctx context.Context, limit time.Duration, call func(context.Context) error, done func(context.Context) (bool, error)) error {
	pause := e.pause
	for left := tries - 1; ; left-- {
		err := e.once(ctx, limit, call)
		away := errors.Is(err, sandbox.ErrUnreachable)
		if !away {
			e.patience.over()
		}
		if !away && !doubtful(err) || ctx.Err() != nil {
			return err
		}
		if !(away && e.patience.holds()) && left <= 0 {
			return err
		}
		if proc.Pause(ctx, pause) != nil {
			return ctx.Err()
		}
		pause = min(2*pause, longestPause)
		if over, err := done(ctx); over || err != nil {
			return err
		}
	}
}

// Guard has every request refused while check refuses: what is on the engine may
// be another's by then.
func (e *conn) Guard(check func() error) { e.guard = check }

// once makes a call under a deadline of its own. A lost engine is told apart
// by sandbox.ErrUnreachable; a caller that gave up gets its own error.
func (e *conn) once(ctx context.Context, limit time.Duration, call func(context.Context) error) error {
	if e.guard != nil {
		if err := e.guard(); err != nil {
			return err
		}
	}
	bound, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := call(bound)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case bound.Err() != nil:
		return fmt.Errorf("%w: %s did not answer within %s", sandbox.ErrUnreachable, e.host, limit)
	case transient(err):
		return fmt.Errorf("%w at %s: %w", sandbox.ErrUnreachable, e.host, err)
	}
	return answer{err}
}

// answer is an engine's error in one line and without the client's preamble.
type answer struct{ error }

func (a answer) Error() string {
	return wording.OneLine(strings.TrimPrefix(a.error.Error(), "Error response from daemon: "))
}

func (a answer) Unwrap() error { return a.error }

// transient tells trouble on the way to the engine from an answer of it.
func transient(err error) bool {
	late, timed := errors.AsType[net.Error](err)
	_, exchange := errors.AsType[*url.Error](err) // what broke is the exchange, before there was an answer
	return exchange || timed && late.Timeout() || client.IsErrConnectionFailed(err) ||
		errdefs.IsUnavailable(err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNREFUSED)
}

// errDoubtful marks an answer whose kind the client drops.
var errDoubtful = errors.New("unexpected answer of the engine")

// doubtful reports whether an answer is believed only when the engine repeats it: an engine
// that shuts down fails with an internal error at whatever it was asked.
func doubtful(err error) bool {
	_, garbled := errors.AsType[*json.SyntaxError](err)
	return garbled || errdefs.IsInternal(err) || errors.Is(err, errDoubtful)
}

// unreachable is the sentence for a person whose engine does not answer. A socket is
// asked once more: the client's error keeps the address and drops the reason.
func unreachable(ctx context.Context, host string, cause error) error {
	hint := "check that it runs there, or choose another with DOCKER_HOST or `docker context use`"
	path, isSocket := strings.CutPrefix(host, "unix://")
	if isSocket {
		if conn, err := new(net.Dialer).DialContext(ctx, "unix", path); err == nil {
			conn.Close()
		} else {
			cause = err
		}
	}
	switch {
	case errors.Is(cause, fs.ErrPermission):
		hint = "you may not open its socket: run `sudo usermod -aG docker $USER` and log in again"
	case isSocket && (errors.Is(cause, fs.ErrNotExist) || errors.Is(cause, syscall.ECONNREFUSED)):
		hint = "no engine runs there: install Docker or start it (`sudo systemctl start docker`), or name another with DOCKER_HOST"
	}
	return fmt.Errorf("%w at %s: %s (%w)", sandbox.ErrUnreachable, host, hint, cause)
}

// patience is how long calls are repeated while the engine is away, in all: an
// engine that is restarted is back within seconds, and what it ran is not lost.
type patience struct {
	mu    sync.Mutex
	ends  context.Context // nobody waits any longer
	span  time.Duration
	tell  func(away time.Duration, back bool)
	since time.Time // when it was found to be away; zero while it answers
}

// Patient has every call wait up to span for an engine that does not answer, until
// ends does. tell hears when the waiting begins, and when it was worth while.
func (e *conn) Patient(ends context.Context, span time.Duration, tell func(away time.Duration, back bool)) {
	e.patience.mu.Lock()
	defer e.patience.mu.Unlock()
	e.patience.ends, e.patience.span, e.patience.tell = ends, span, tell
}

// holds is asked after a call in vain.
func (p *patience) holds() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.span <= 0 || p.ends.Err() != nil {
		return false
	}
	if p.since.IsZero() {
		p.since = time.Now()
		p.tell(0, false)
	}
	return time.Since(p.since) < p.span
}

// over notes that the engine answered.
func (p *patience) over() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.since.IsZero() {
		p.tell(time.Since(p.since), true)
		p.since = time.Time{}
	}
}
