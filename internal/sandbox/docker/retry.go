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
	short      = 30 * time.Second // calls that read or change little
	long       = 2 * time.Minute  // calls that start or remove; on a busy disk they are slow
	copyTime   = 10 * time.Minute // a whole tree on a slow disk
	endless    = 24 * time.Hour   // calls on images, which the caller limits
	tries      = 4
	firstPause = 100 * time.Millisecond

	longestPause = 2 * time.Second
)

// do makes a call that is idempotent, with the time limit. It repeats it on transport errors.
func (e *conn) do(ctx context.Context, limit time.Duration, call func(context.Context) error) error {
	return e.change(ctx, limit, call, func(context.Context) (bool, error) { return false, nil })
}

// get makes a call that returns something, or creates it unless it exists.
func get[By, T any](ctx context.Context, e *conn, call func(context.Context, By) (T, error),
	by By) (found T, err error) {
	err = e.do(ctx, short, func(ctx context.Context) (err error) {
		found, err = call(ctx, by)
		return err
	})
	return found, err
}

// change makes a call that is not idempotent. If the response is lost or doubtful, it asks done
// whether the engine carried the call out before it repeats it.
func (e *conn) change(ctx context.Context, limit time.Duration, call func(context.Context) error,
	done func(context.Context) (bool, error)) error {
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

// Guard makes every request fail while check fails, because the objects on the engine may then
// belong to another abl.
func (e *conn) Guard(check func() error) { e.guard = check }

// once makes a call with the time limit. It returns sandbox.ErrUnreachable if the engine does not
// respond, and ctx's error if ctx is done.
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
		return fmt.Errorf("%w: %s did not respond within %s", sandbox.ErrUnreachable, e.host, limit)
	case transient(err):
		return fmt.Errorf("%w at %s: %w", sandbox.ErrUnreachable, e.host, err)
	}
	return answer{err}
}

// answer is an error of the engine. Its text is one line without the client's prefix.
type answer struct{ error }

func (a answer) Error() string {
	return wording.OneLine(strings.TrimPrefix(a.error.Error(), "Error response from daemon: "))
}

func (a answer) Unwrap() error { return a.error }

// transient reports whether an error is a transport error, not a response of the engine.
func transient(err error) bool {
	late, timed := errors.AsType[net.Error](err)
	_, exchange := errors.AsType[*url.Error](err) // the request failed without a response
	return exchange || timed && late.Timeout() || client.IsErrConnectionFailed(err) ||
		errdefs.IsUnavailable(err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNREFUSED)
}

// errDoubtful marks a response whose error type the client drops.
var errDoubtful = errors.New("unexpected response of the engine")

// doubtful reports whether to repeat a request despite a response: an engine that shuts down
// responds with an internal error to any request.
func doubtful(err error) bool {
	_, garbled := errors.AsType[*json.SyntaxError](err)
	return garbled || errdefs.IsInternal(err) || errors.Is(err, errDoubtful)
}

// unreachable returns an error with a hint for the user. It connects to a socket once more, because
// the client's error drops the reason.
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
		hint = "no permission to open its socket: run `sudo usermod -aG docker $USER` and log in again"
	case isSocket && (errors.Is(cause, fs.ErrNotExist) || errors.Is(cause, syscall.ECONNREFUSED)):
		hint = "no engine runs there: install Docker or start it (`sudo systemctl start docker`), or set DOCKER_HOST"
	}
	return fmt.Errorf("%w at %s: %s (%w)", sandbox.ErrUnreachable, host, hint, cause)
}

// patience limits how long calls are repeated while the engine does not respond. A restarted engine
// is back within seconds with its containers.
type patience struct {
	mu     sync.Mutex
	ends   context.Context // ends the waiting
	span   time.Duration
	report func(away time.Duration, back bool)
	since  time.Time // start of the outage, zero while the engine responds
}

// Patient makes every call wait up to span for an engine that does not respond, until ends is
// done. report is called at the start of an outage and when the engine responds again.
func (e *conn) Patient(ends context.Context, span time.Duration, report func(away time.Duration, back bool)) {
	e.patience.mu.Lock()
	defer e.patience.mu.Unlock()
	e.patience.ends, e.patience.span, e.patience.report = ends, span, report
}

// holds reports, after a failed call, whether to wait any longer.
func (p *patience) holds() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.span <= 0 || p.ends.Err() != nil {
		return false
	}
	if p.since.IsZero() {
		p.since = time.Now()
		p.report(0, false)
	}
	return time.Since(p.since) < p.span
}

// over ends an outage.
func (p *patience) over() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.since.IsZero() {
		p.report(time.Since(p.since), true)
		p.since = time.Time{}
	}
}
