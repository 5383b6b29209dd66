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

// listener bounds the open connections, and hears what net/http answers without
// asking the handler.
type listener struct {
	net.Listener
	most   int64
	open   atomic.Int64
	refuse func(words string) // net/http could not read a request
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
	held   bool      // until the end of the answer is there, too
	closed sync.Once
}

// connKey is where a request's context has its connection.
type connKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// connOf is the connection that a request came on, nil when it is none of a listener's.
func connOf(ctx context.Context) *conn {
	c, _ := ctx.Value(connKey{}).(*conn)
	return c
}

// gathered are buffers for what net/http writes 4 KiB at a time.
var gathered = sync.Pool{New: func() any { b := make([]byte, 0, pieceSize+pieceSize/8); return &b }}

// cork gathers what is written until uncork, so that a piece of an answer is one
// write to the socket. A nil conn gathers nothing.
func (c *conn) cork() {
	if c != nil && c.corked == nil {
		c.corked = gathered.Get().(*[]byte)
	}
}

// hold keeps what has gathered until the answer's end is written, which comes from
// net/http and in the next moment. A nil conn holds nothing.
func (c *conn) hold() bool {
	if c == nil {
		return false
	}
	c.held = true
	return true
}

// ending is how net/http ends an answer in chunks.
var ending = []byte("0\r\n\r\n")

// uncork writes what has gathered.
func (c *conn) uncork() error {
	if c == nil || c.corked == nil {
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

// unread is how net/http itself goes on after the status line of a refusal; no
// answer of a handler looks like it, because each has a date.
var unread = []byte("\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n")

func (c *conn) Write(p []byte) (int, error) {
	if c.corked != nil {
		if *c.corked = append(*c.corked, p...); c.held && bytes.HasSuffix(*c.corked, ending) {
			return len(p), c.uncork()
		}
		return len(p), nil
	}
	if status, found := bytes.CutPrefix(p, []byte("HTTP/1.1 ")); found {
		if end := bytes.IndexByte(status, '\r'); end >= 0 && bytes.HasPrefix(status[end:], unread) {
			c.from.refuse(string(status[:end]))
		}
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
