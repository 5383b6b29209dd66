package witness

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// dialTime bounds how long the app may take to accept a connection.
const dialTime = 10 * time.Second

// Proxy passes on to the app and back, byte by byte, and knows of each answer to
// which request it belongs. What is not HTTP/1 passes as it is, and so does a
// connection that becomes something else.
type Proxy struct {
	To   string         // address of the app, or the path of a door's socket
	Seen func(Exchange) // hears of each exchange when it is over, of several at a time

	Altering *Altering // nil: nothing
	Bytes    bool      // it is no HTTP: what passes is counted, a connection an exchange

	kept atomic.Int64 // bytes of the bodies that are under way
}

// Serve serves until ctx ends.
func (p *Proxy) Serve(ctx context.Context, l net.Listener) error { return Serve(ctx, l, p.connect) }

// conn is one connection of a client, with its own to the app.
type conn struct {
	client, app  net.Conn
	fromClient   *bufio.Reader
	fromApp      *bufio.Reader
	asked        chan *turn    // requests that were or are being sent, in order
	asking, gone chan struct{} // closed when no request, no answer follows
	unread       chan struct{} // closed when answers are no longer read
	proxy        *Proxy
}

// turn begins a turn.
func (c *conn) turn() *turn {
	x := &turn{stays: make(chan struct{}), sent: recorder{kept: &c.proxy.kept}, got: recorder{kept: &c.proxy.kept}}
	x.At = time.Now().UTC()
	return x
}

// turn is one request until it is answered.
type turn struct {
	Exchange
	raw       bool          // no HTTP from here on
	upgrade   bool          // it asks for another protocol
	stays     chan struct{} // closed when it did not get it
	sent, got recorder
	under     atomic.Int32 // its request and its answer, while they are under way
}

// over says that the request, or the answer, has come to its end; with both the turn has.
func (c *conn) over(x *turn) {
	if x.under.Add(-1) == 0 {
		x.Took, x.Sent, x.Got = time.Since(x.At), x.sent.body(), x.got.body()
		c.proxy.Seen(x.Exchange)
	}
}

func (p *Proxy) connect(ctx context.Context, client net.Conn) {
	app, err := dial(ctx, p.To)
	if err != nil {
		p.Seen(Exchange{At: time.Now().UTC()})
		refuse(client)
		return
	}
	defer app.Close()
	defer context.AfterFunc(ctx, func() { app.Close() })()
	c := &conn{
		client: client, app: app,
		fromClient: bufio.NewReaderSize(client, lineSize), fromApp: bufio.NewReaderSize(app, lineSize),
		asked: make(chan *turn, 8), asking: make(chan struct{}), gone: make(chan struct{}), unread: make(chan struct{}),
		proxy: p,
	}
	if p.Bytes {
		x := c.turn()
		x.under.Store(1)
		both(client, app, io.MultiWriter(app, &x.sent), io.MultiWriter(client, &x.got))
		c.over(x)
		return
	}
	go c.requests()
	c.answers()
	close(c.gone)
	app.Close()
	client.Close()
	<-c.asking
	close(c.asked)
	for x := range c.asked { // never answered
		c.over(x)
	}
}

// requests passes on what the client sends.
func (c *conn) requests() {
	defer close(c.asking)
	defer closeWrite(c.app)
	for c.request() {
	}
}

// request passes on one request; false says that none follows.
func (c *conn) request() bool {
	raw, req, err := readRequest(c.fromClient)
	if err == io.EOF {
		return false
	}
	x := c.turn()
	if x.raw = err != nil; err == nil {
		x.Method, x.Target = req.Method, req.RequestURI
		x.upgrade = req.Method == http.MethodConnect || req.Header.Get("Upgrade") != ""
	} else {
		_, _ = x.sent.Write(raw)
	}
	x.under.Store(2)
	defer c.over(x)
	if !c.push(x) {
		return false
	}
	if c.proxy.Altering != nil { // what is packed cannot be altered
		raw = acceptEncoding.ReplaceAll(raw, nil)
	}
	if _, err := c.app.Write(raw); err != nil {
		return false
	}
	if err == nil {
		err = copyBody(c.app, &x.sent, c.fromClient, requestFraming(req))
	}
	if err != nil || x.upgrade && c.switched(x) { // what follows is no HTTP, or no body
		_, _ = io.Copy(io.MultiWriter(c.app, &x.sent), c.fromClient)
		return false
	}
	return true
}

// push queues a request for its answer; false says that nobody listens any more.
func (c *conn) push(x *turn) bool {
	select {
	case c.asked <- x:
		return true
	case <-c.unread: // what the app says now belongs to no request
		x.under.Store(1)
		return true
	case <-c.gone:
		x.under.Store(1)
		return false
	}
}

func (c *conn) switched(x *turn) bool {
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
		if x := c.nextTurn(); !c.answer(x) {
			return
		}
	}
}

// answerBegins is how an answer begins, but for empty lines that some clients pass over.
const answerBegins = "HTTP/1."

// nextTurn is what the app answers now: a request, or none where it speaks first. The
// beginning of an answer waits for its request, or an app that sends it ahead would not
// be read, and its clients would never know.
func (c *conn) nextTurn() (x *turn) {
	for waiting := true; waiting; {
		came, _ := c.fromApp.Peek(c.fromApp.Buffered())
		begins := bytes.TrimLeft(came, "\r\n")
		if n := min(len(begins), len(answerBegins)); string(begins[:n]) != answerBegins[:n] {
			break
		}
		more := make(chan bool, 1)
		go func() {
			_, err := c.fromApp.Peek(len(came) + 1)
			more <- err == nil
		}()
		select {
		case x = <-c.asked:
		case <-c.asking:
		case waiting = <-more:
			continue
		}
		_ = c.app.SetReadDeadline(time.Now())
		<-more
		_ = c.app.SetReadDeadline(time.Time{})
		break
	}
	if x != nil {
		return x
	}
	select {
	case x = <-c.asked: // before its request was sent
	default: // the app speaks first
		x = c.turn()
		x.raw = true
		x.under.Store(1)
	}
	return x
}

// pass passes on all that follows as it is.
func (c *conn) pass(x *turn, first []byte) {
	close(c.unread)
	both := io.MultiWriter(c.client, &x.got)
	if _, err := both.Write(first); err != nil {
		return
	}
	if _, err := io.Copy(both, c.fromApp); err == nil {
		closeWrite(c.client)
		<-c.asking
	}
}

// answer passes on the answer to a request; false ends the connection.
func (c *conn) answer(x *turn) bool {
	defer c.over(x)
	for !x.raw {
		raw, err := readHead(c.fromApp)
		if err != nil {
			c.pass(x, raw)
			return false
		}
		resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(raw)), &http.Request{Method: x.Method})
		if err != nil {
			c.pass(x, raw)
			return false
		}
		if s := resp.StatusCode; s >= 200 || s == http.StatusSwitchingProtocols { // not one on the way to it
			x.Status, x.Header = s, resp.Header
		}
		f, s := answerFraming(x.Method, resp), resp.StatusCode
		if c.proxy.Altering != nil && s >= 200 && x.Method != http.MethodConnect {
			close(x.stays)
			return c.alter(x, resp, raw, f) == nil && (f.chunked || f.length >= 0)
		}
		if _, err := c.client.Write(raw); err != nil {
			return false
		}
		switch {
		case s == http.StatusSwitchingProtocols, x.Method == http.MethodConnect && s/100 == 2:
			c.pass(x, nil)
			return false
		case s < 200:
			continue
		}
		close(x.stays)
		if copyBody(c.client, &x.got, c.fromApp, f) != nil {
			c.pass(x, nil) // a body that is none, or the end
			return false
		}
		return f.chunked || f.length >= 0
	}
	c.pass(x, nil)
	return false
}
