package gateway

import (
	"bytes"
	"context"
	"net"
	"sync"
	"sync/atomic"
)

// Bounded is l with at most so many open connections.
func Bounded(l net.Listener, most int64) net.Listener { return &listener{Listener: l, most: most} }

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
	corked *[]byte // set: what is written gathers here
	held   bool    // until the end of the answer is there, too, which net/http writes in the next moment
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
	return c.Conn.Write(p)
}

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
