package witness

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// Proxy passes on to the app and back, byte by byte, and knows of each answer to
// which request it belongs. Of a request only the encodings that abl cannot read are left out. What is not HTTP/1 passes as it is, and so does a
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
	client, app *side
	asked       chan *turn    // requests that were or are being sent, in order
	asking      chan struct{} // closed when no request follows
	unread      chan struct{} // closed when answers are no longer read
	proxy       *Proxy
}

// turn is one request until it is answered.
type turn struct {
	Exchange
	raw       bool          // no HTTP from here on
	stays     chan struct{} // closed when its answer is one of HTTP
	sent, got recorder
	whole     atomic.Bool  // its request has been sent
	under     atomic.Int32 // its request and its answer, while they are under way
}

// turn begins a turn of so many sides.
func (p *Proxy) turn(sides int32) *turn {
	x := &turn{stays: make(chan struct{}), sent: recorder{most: keepBody, kept: &p.kept}, got: recorder{most: maxBody, kept: &p.kept}}
	x.At = time.Now().UTC()
	x.under.Store(sides)
	return x
}

// over says that the request, or the answer, has come to its end; with both the turn has.
func (p *Proxy) over(x *turn) {
	if x.under.Add(-1) == 0 {
		x.Took, x.Sent, x.Got = time.Since(x.At), x.sent.body(), x.got.body()
		p.Seen(x.Exchange)
	}
}

func (p *Proxy) connect(ctx context.Context, client net.Conn) {
	if !reach(ctx, client, p.To, func(app net.Conn) { p.between(client, app) }) {
		p.Seen(Exchange{At: time.Now().UTC()})
	}
}

// between passes on what comes from a client and from the app.
func (p *Proxy) between(client, app net.Conn) {
	if p.Bytes {
		x := p.turn(1)
		both(client, app, io.MultiWriter(app, &x.sent), io.MultiWriter(client, &x.got))
		p.over(x)
		return
	}
	c := &conn{
		client: newSide(client), app: newSide(app),
		asked: make(chan *turn, 8), asking: make(chan struct{}), unread: make(chan struct{}), proxy: p,
	}
	go c.requests()
	x := c.answers()
	left := c.hasLeft()
	close(c.unread)
	if x != nil {
		x.Left = left
		c.pass(x)
	}
	app.Close()
	client.Close()
	<-c.asking
	close(c.asked)
	for x := range c.asked { // never answered
		x.Left = left
		p.over(x)
	}
}

// hasLeft says that the client has closed its side.
func (c *conn) hasLeft() bool {
	select {
	case <-c.asking:
		return true
	default:
		return false
	}
}

// requests passes on what the client sends.
func (c *conn) requests() {
	defer closeWrite(c.app.Conn) // runs last: the responses' side asks who left once the app closes
	defer close(c.asking)
	for c.request() {
	}
}

// request passes on one request; false says that none follows.
func (c *conn) request() bool {
	req, err := c.client.request()
	if err == io.EOF {
		return false
	}
	x := c.proxy.turn(2)
	defer c.proxy.over(x)
	if x.raw = err != nil; !x.raw {
		x.Method, x.Target, x.SentHeader = req.Method, req.RequestURI, req.Header
	}
	select {
	case c.asked <- x:
	case <-c.unread: // what the app says now belongs to no request
		c.proxy.over(x)
	}
	if err == nil {
		if _, err := c.app.Write(readable(c.client.take())); err != nil {
			return false
		}
		err = c.client.body(req.Body, c.app, &x.sent)
		x.whole.Store(true)
	}
	if err != nil || c.switched(x, req) { // what follows is no HTTP, or no body
		_ = c.client.rest(c.app, &x.sent)
		return false
	}
	return true
}

// switched says whether a request that asks for another protocol gets it.
func (c *conn) switched(x *turn, req *http.Request) bool {
	if req.Method != http.MethodConnect && req.Header.Get("Upgrade") == "" {
		return false
	}
	select {
	case <-x.stays:
		return false
	case <-c.unread:
		return true
	}
}

func closeWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}

// answers passes on answers up to what is none, which belongs to the turn that it returns,
// nil at the app's end.
func (c *conn) answers() *turn {
	for {
		x := c.nextTurn()
		if x == nil || x.raw || !c.answer(x) {
			return x
		}
		close(x.stays)
		c.proxy.over(x)
	}
}

// nextTurn is what the app answers now: a request, or none where it speaks first, nil at its
// end. What it says first passes as it is, and answers nothing that is asked afterwards.
func (c *conn) nextTurn() *turn {
	if _, err := c.app.in.Peek(1); err != nil {
		return nil
	}
	select {
	case x := <-c.asked: // before its request was sent
		return x
	default:
		x := c.proxy.turn(1)
		x.raw = true
		return x
	}
}

// answer passes on the answer to a request; false says that it is none, or that what follows
// is none.
func (c *conn) answer(x *turn) bool {
	for {
		resp, err := c.app.answer(x.Method)
		if err != nil {
			return false
		}
		s := resp.StatusCode
		switched := s == http.StatusSwitchingProtocols || x.Method == http.MethodConnect && s/100 == 2
		if s >= 200 || switched { // not one on the way to it
			x.Status, x.Header = s, resp.Header
		}
		head := c.app.take()
		if c.proxy.Altering != nil && s >= 200 && x.Method != http.MethodConnect {
			return c.alter(x, resp, head) == nil
		}
		if _, err := c.client.Write(head); err != nil || switched {
			return false
		}
		if s >= 200 {
			return c.app.body(resp.Body, c.client, &x.got) == nil
		}
	}
}

// pass passes on all that the app says from here on as it is.
func (c *conn) pass(x *turn) {
	defer c.proxy.over(x)
	if c.app.rest(c.client, &x.got) == nil {
		closeWrite(c.client.Conn)
		<-c.asking
	}
}
