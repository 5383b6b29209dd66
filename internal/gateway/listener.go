package gateway

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"sync/atomic"
)

// Bounded lets so many connections be open at once, as the ConnState of a server: a client
// beyond that sees its own closed. One that was taken over from the server no longer counts.
func Bounded(most int64) func(net.Conn, http.ConnState) {
	var open atomic.Int64
	return func(c net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			if open.Add(1) > most {
				c.Close()
			}
		case http.StateClosed, http.StateHijacked:
			open.Add(-1)
		}
	}
}

// corking is a listener whose connections can be corked.
type corking struct{ net.Listener }

// Accept waits for the next connection.
func (l corking) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return &conn{Conn: c}, err
}

type conn struct {
	net.Conn
	gathered []byte // what was written since it is corked
	corked   bool
	held     bool // until the end of the answer is there, too, which net/http writes in the next moment
}

// connKey is where a request's context has its connection.
type connKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// connOf is the connection that a request came on.
func connOf(ctx context.Context) *conn { return ctx.Value(connKey{}).(*conn) }

// cork gathers what is written until uncork, so that a piece of an answer, which net/http
// writes 4 KiB at a time, is one write to the socket.
func (c *conn) cork() { c.corked = true }

// ending is how net/http ends an answer in chunks.
var ending = []byte("0\r\n\r\n")

// uncork writes what has gathered.
func (c *conn) uncork() error {
	c.corked, c.held = false, false
	_, err := c.Conn.Write(c.gathered)
	c.gathered = c.gathered[:0]
	return err
}

func (c *conn) Write(p []byte) (int, error) {
	if !c.corked {
		return c.Conn.Write(p)
	}
	c.gathered = append(c.gathered, p...)
	if c.held && bytes.HasSuffix(c.gathered, ending) {
		return len(p), c.uncork()
	}
	return len(p), nil
}

// CloseWrite lets net/http, and a tunnel, end one direction.
func (c *conn) CloseWrite() error {
	if t, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return t.CloseWrite()
	}
	return net.ErrClosed
}
