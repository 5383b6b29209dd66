package gateway

import (
	"bytes"
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// writeTime is how long a client may take to accept a piece of an answer, give or
// take the pause after which the clock is set again.
const (
	writeTime  = time.Minute
	writePause = 10 * time.Second
)

// listener bounds the open connections.
type listener struct {
	net.Listener
	most int64
	open atomic.Int64
}

// Accept turns connections away that are too many; the client sees them closed.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Add(1) > l.most {
			l.open.Add(-1)
			c.Close()
			continue
		}
		return &conn{Conn: c, from: l}, nil
	}
}

type conn struct {
	net.Conn
	from   *listener
	set    time.Time // when the clock for writes was; net/http writes one at a time
	corked *[]byte   // set: what is written gathers here
	held   bool      // until the end of the answer is there, too, which net/http writes in the next moment
	closed sync.Once
}

// connKey is where a request's context has its connection.
type connKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// connOf is the connection that a request came on.
func connOf(ctx context.Context) *conn { return ctx.Value(connKey{}).(*conn) }

// gathered are buffers for what net/http writes 4 KiB at a time.
var gathered = sync.Pool{New: func() any { b := make([]byte, 0, pieceSize+pieceSize/8); return &b }}

// cork gathers what is written until uncork, so that a piece of an answer is one
// write to the socket.
func (c *conn) cork() {
	if c.corked == nil {
		c.corked = gathered.Get().(*[]byte)
	}
}

// ending is how net/http ends an answer in chunks.
var ending = []byte("0\r\n\r\n")

// uncork writes what has gathered.
func (c *conn) uncork() error {
	if c.corked == nil {
		return nil
	}
	all := c.corked
	c.corked, c.held = nil, false
	_, err := c.Write(*all)
	if *all = (*all)[:0]; cap(*all) < 2*pieceSize { // one that headers have stretched is not kept
		gathered.Put(all)
	}
	return err
}

func (c *conn) Write(p []byte) (int, error) {
	if c.corked != nil {
		if *c.corked = append(*c.corked, p...); c.held && bytes.HasSuffix(*c.corked, ending) {
			return len(p), c.uncork()
		}
		return len(p), nil
	}
	if now := time.Now(); now.Sub(c.set) > writePause {
		if err := c.Conn.SetWriteDeadline(now.Add(writeTime + writePause)); err != nil {
			return 0, err
		}
		c.set = now
	}
	return c.Conn.Write(p)
}

// SetWriteDeadline leaves the clock for writes alone: it is the connection's own,
// and net/http stops it after every answer.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// SetDeadline is for reads, for the same reason.
func (c *conn) SetDeadline(t time.Time) error { return c.Conn.SetReadDeadline(t) }

// CloseWrite lets net/http, and a tunnel, end one direction.
func (c *conn) CloseWrite() error {
	if t, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return t.CloseWrite()
	}
	return net.ErrClosed
}

func (c *conn) Close() error {
	c.closed.Do(func() { c.from.open.Add(-1) })
	return c.Conn.Close()
}
