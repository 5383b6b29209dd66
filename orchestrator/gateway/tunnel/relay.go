package tunnel

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// What ends a relay before its two sides do.
var (
	ErrBytes = errors.New("more bytes than a tunnel may carry")
	ErrIdle  = errors.New("silent for too long")
)

// Bounds of one tunnel.
type Bounds struct {
	Bytes int64         // both ways together
	Idle  time.Duration // without a byte either way
}

// Relay copies both ways until one side ends or a bound is reached, closes both
// and says how many bytes went up and came down.
func Relay(ctx context.Context, client, server net.Conn, b Bounds) (up, down int64, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	idle := time.AfterFunc(b.Idle, func() { cancel(ErrIdle) })
	defer idle.Stop()
	stop := context.AfterFunc(ctx, func() { client.Close(); server.Close() })
	defer stop()

	left := &atomic.Int64{}
	left.Store(b.Bytes)
	pipe := func(to, from net.Conn, n *int64) {
		w := &metered{to: to, left: left, n: n, alive: func() { idle.Reset(b.Idle) }, over: func() { cancel(ErrBytes) }}
		_, _ = io.Copy(w, onlyReader{from}) // how a peer ends is its own affair
		half(to)
	}
	var both sync.WaitGroup
	both.Go(func() { pipe(server, client, &up) })
	both.Go(func() { pipe(client, server, &down) })
	both.Wait()
	client.Close()
	server.Close()
	return up, down, context.Cause(ctx)
}

// half tells the other side that no more comes.
func half(c net.Conn) {
	if t, ok := c.(interface{ CloseWrite() error }); ok && t.CloseWrite() == nil {
		return
	}
	c.Close()
}

// onlyReader hides what would copy past the count.
type onlyReader struct{ io.Reader }

// metered counts what is written and ends it when no more may be.
type metered struct {
	to          io.Writer
	left        *atomic.Int64
	n           *int64
	alive, over func()
}

func (m *metered) Write(p []byte) (int, error) {
	if m.left.Add(-int64(len(p))) < 0 {
		m.over()
		return 0, ErrBytes
	}
	m.alive()
	n, err := m.to.Write(p)
	*m.n += int64(n)
	return n, err
}
