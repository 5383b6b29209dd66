package gateway

import (
	"bytes"
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
	closed sync.Once
}

// unread is how net/http itself goes on after the status line of a refusal; no
// answer of a handler looks like it, because each has a date.
var unread = []byte("\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n")

func (c *conn) Write(p []byte) (int, error) {
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
