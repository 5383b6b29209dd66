package witness

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"time"
)

// dialTime bounds how long the app may take to accept a connection.
const dialTime = 10 * time.Second

// Proxy passes on to the app and back, byte by byte, and knows of each answer to
// which request it belongs. What is not HTTP/1 passes as it is, and so does a
// connection that becomes something else.
type Proxy struct {
	To string // address of the app
}

// Serve serves until ctx ends.
func (p *Proxy) Serve(ctx context.Context, l net.Listener) error { return Serve(ctx, l, p.connect) }

// conn is one connection of a client, with its own to the app.
type conn struct {
	client, app  net.Conn
	fromClient   *bufio.Reader
	fromApp      *bufio.Reader
	asked        chan *exchange // requests that were or are being sent, in order
	asking, gone chan struct{}  // closed when no request, no answer follows
	unread       chan struct{}  // closed when answers are no longer read
}

// exchange is one request until it is answered.
type exchange struct {
	raw     bool // no HTTP from here on
	method  string
	upgrade bool          // it asks for another protocol
	stays   chan struct{} // closed when it did not get it
}

func (p *Proxy) connect(ctx context.Context, client net.Conn) {
	app, err := (&net.Dialer{Timeout: dialTime}).DialContext(ctx, "tcp", p.To)
	if err != nil {
		return // as if the app had closed it
	}
	defer app.Close()
	defer context.AfterFunc(ctx, func() { app.Close() })()
	c := &conn{
		client: client, app: app,
		fromClient: bufio.NewReaderSize(client, lineSize), fromApp: bufio.NewReaderSize(app, lineSize),
		asked: make(chan *exchange, 64), asking: make(chan struct{}), gone: make(chan struct{}), unread: make(chan struct{}),
	}
	go c.requests()
	c.answers()
	close(c.gone)
	app.Close()
	client.Close()
	<-c.asking
}

// requests passes on what the client sends.
func (c *conn) requests() {
	defer close(c.asking)
	defer closeWrite(c.app)
	for {
		raw, req, err := readRequest(c.fromClient)
		if err == io.EOF {
			return
		}
		x := &exchange{raw: err != nil, stays: make(chan struct{})}
		if err == nil {
			x.method, x.upgrade = req.Method, req.Method == http.MethodConnect || req.Header.Get("Upgrade") != ""
		}
		if !c.push(x) {
			return
		}
		if _, err := c.app.Write(raw); err != nil {
			return
		}
		if err == nil {
			err = copyBody(c.app, c.fromClient, requestFraming(req))
		}
		if err != nil || x.upgrade && c.switched(x) { // what follows is no HTTP, or no body
			_, _ = io.Copy(c.app, c.fromClient)
			return
		}
	}
}

func (c *conn) push(x *exchange) bool {
	select {
	case c.asked <- x:
		return true
	case <-c.unread:
		return true
	case <-c.gone:
		return false
	}
}

func (c *conn) switched(x *exchange) bool {
	select {
	case <-x.stays:
		return false
	case <-c.unread:
		return true
	case <-c.gone:
		return false
	}
}

func closeWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}

// answers passes on what the app sends.
func (c *conn) answers() {
	for {
		if _, err := c.fromApp.Peek(1); err != nil {
			return
		}
		var x *exchange
		select {
		case x = <-c.asked: // before its request was sent
		default: // the app speaks first
		}
		if x == nil || x.raw {
			c.pass(nil)
			return
		}
		if !c.answer(x) {
			return
		}
	}
}

// pass passes on all that follows as it is.
func (c *conn) pass(first []byte) {
	close(c.unread)
	if _, err := c.client.Write(first); err != nil {
		return
	}
	if _, err := io.Copy(c.client, c.fromApp); err == nil {
		closeWrite(c.client)
		<-c.asking
	}
}

// answer passes on the answer to a request; false ends the connection.
func (c *conn) answer(x *exchange) bool {
	for {
		raw, err := readHead(c.fromApp)
		if err != nil {
			c.pass(raw)
			return false
		}
		resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(raw)), &http.Request{Method: x.method})
		if err != nil {
			c.pass(raw)
			return false
		}
		switch s := resp.StatusCode; {
		case s == http.StatusSwitchingProtocols, x.method == http.MethodConnect && s/100 == 2:
			c.pass(raw)
			return false
		case s < 200:
			if _, err := c.client.Write(raw); err != nil {
				return false
			}
			continue
		}
		close(x.stays)
		if _, err := c.client.Write(raw); err != nil {
			return false
		}
		f := answerFraming(x.method, resp)
		if copyBody(c.client, c.fromApp, f) != nil {
			c.pass(nil) // a body that is none, or the end
			return false
		}
		return f.chunked || f.length >= 0
	}
}
