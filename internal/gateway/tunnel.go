package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// What ends a tunnel before its two sides do.
var (
	errTunnelBytes = errors.New("more bytes than a tunnel may carry")
	errTunnelIdle  = errors.New("silent for too long")
)

// connect opens a tunnel to a registry.
func (x *exchange) connect() {
	select {
	case x.tunnels <- struct{}{}:
		defer func() { <-x.tunnels }()
	default:
		x.refuse(http.StatusServiceUnavailable, fmt.Sprintf("%d tunnels are open", cap(x.tunnels)))
		return
	}
	ctx, cancel := context.WithTimeoutCause(x.ctx, span(x.limits.TunnelMS), errTime)
	defer cancel()
	far, err := x.dialer.Open(ctx, x.verdict.Connect)
	if errors.Is(err, ErrInside) {
		x.refuse(http.StatusForbidden, err.Error())
		return
	}
	if err != nil {
		x.line.Reason = err.Error()
		x.fail(http.StatusBadGateway, x.line.Reason)
		return
	}
	defer far.Close()
	near, early, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		x.line.Reason = "cannot take the connection over: " + err.Error()
		return
	}
	defer near.Close()
	x.line.Req.Status = http.StatusOK
	if _, err := io.WriteString(near, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		x.line.Req.Aborted = true
		return
	}
	t := tunnel{near: near, early: early.Reader, far: far, bytes: x.limits.Tunnel, idle: span(x.limits.IdleMS)}
	if x.line.Req.In, x.line.Req.Out, err = t.relay(ctx); err != nil {
		x.line.Req.Cut, x.line.Reason = true, err.Error()
	}
}

// tunnel is two connections with what they may carry.
type tunnel struct {
	near, far net.Conn
	early     io.Reader // reads from near what came before it was taken over, and the rest
	bytes     int64     // both ways together
	idle      time.Duration
}

// relay copies both ways until one side ends or a bound is reached, and says how many
// bytes went up and came down.
func (t tunnel) relay(ctx context.Context) (up, down int64, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	idle := time.AfterFunc(t.idle, func() { cancel(errTunnelIdle) })
	defer idle.Stop()
	defer context.AfterFunc(ctx, func() { t.near.Close(); t.far.Close() })()
	left := &atomic.Int64{}
	left.Store(t.bytes)
	pipe := func(to net.Conn, from io.Reader, n *int64) {
		counted := writer(func(p []byte) (int, error) {
			if left.Add(-int64(len(p))) < 0 {
				cancel(errTunnelBytes)
				return 0, errTunnelBytes
			}
			idle.Reset(t.idle)
			written, err := to.Write(p)
			*n += int64(written)
			return written, err
		})
		_, _ = io.Copy(counted, from) // how a peer ends is its own affair
		if half, ok := to.(interface{ CloseWrite() error }); !ok || half.CloseWrite() != nil {
			to.Close()
		}
	}
	var both sync.WaitGroup
	both.Go(func() { pipe(t.far, t.early, &up) })
	both.Go(func() { pipe(t.near, t.far, &down) })
	both.Wait()
	return up, down, context.Cause(ctx)
}

type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }
