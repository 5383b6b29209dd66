package witness

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// Proxy passes data between clients and an app byte by byte, and records which response belongs to
// which request. It changes only Accept-Encoding of requests (see readable) and the responses that
// Altering selects. Data that is not HTTP/1 passes unchanged, also after a connection switches
// protocols.
type Proxy struct {
	To   string         // address of the app, or path of its proxy socket
	Seen func(Exchange) // called at the end of each exchange, concurrently

	Altering *Altering // nil alters nothing
	Bytes    bool      // the protocol is not HTTP: each connection is one exchange

	kept atomic.Int64 // bytes kept of the bodies in transit
}

// Serve serves connections of l until ctx is done.
func (p *Proxy) Serve(ctx context.Context, l net.Listener) error { return Serve(ctx, l, p.connect) }

// conn is one connection of a client and its connection to the app.
type conn struct {
	client, app *side
	asked       chan *turn    // requests without a response yet, in order
	asking      chan struct{} // closed after the last request
	unread      chan struct{} // closed when the proxy reads no more responses
	proxy       *Proxy
}

// turn is one request in transit and its response.
type turn struct {
	Exchange
	raw       bool          // the data from here on is not HTTP
	stays     chan struct{} // closed when the app responded with HTTP
	late      bool          // the client had closed its side before the response
	sent, got recorder
	whole     atomic.Bool  // the request has been sent completely
	under     atomic.Int32 // number of directions in transit
}

// turn begins a turn. Its exchange ends after as many calls of endDirection as it has sides.
func (p *Proxy) turn(sides int32) *turn {
	x := &turn{
		stays: make(chan struct{}),
		sent:  recorder{most: keepBody, kept: &p.kept},
		got:   recorder{most: maxBody, kept: &p.kept},
	}
	x.At = time.Now().UTC()
	x.under.Store(sides)
	return x
}

// endDirection ends one direction of a turn. After the last one it reports the exchange.
func (p *Proxy) endDirection(x *turn) {
	if x.under.Add(-1) == 0 {
		x.Took, x.Sent, x.Got = time.Since(x.At), x.sent.body(), x.got.body()
		p.Seen(x.Exchange)
	}
}

func (p *Proxy) connect(ctx context.Context, client net.Conn) {
	if !withConn(ctx, client, p.To, func(app net.Conn) { p.relay(client, app) }) {
		p.Seen(Exchange{At: time.Now().UTC()})
	}
}

// relay passes data between a client and the app until both are done.
func (p *Proxy) relay(client, app net.Conn) {
	if p.Bytes {
		x := p.turn(1)
		copyBoth(client, app, io.MultiWriter(app, &x.sent), io.MultiWriter(client, &x.got))
		p.endDirection(x)
		return
	}
	c := &conn{
		client: newSide(client),
		app:    newSide(app),
		asked:  make(chan *turn, 8),
		asking: make(chan struct{}),
		unread: make(chan struct{}),
		proxy:  p,
	}
	go c.requests()
	x := c.answers()
	left := c.hasLeft()
	close(c.unread)
	if x != nil {
		x.Left = left
		c.passRest(x)
	}
	app.Close()
	client.Close()
	<-c.asking
	close(c.asked)
	for x := range c.asked { // requests without a response
		x.Left = left
		p.endDirection(x)
	}
}

// hasLeft reports whether the client has closed its side.
func (c *conn) hasLeft() bool {
	select {
	case <-c.asking:
		return true
	default:
		return false
	}
}

// requests passes on the client's requests.
func (c *conn) requests() {
	defer closeWrite(c.app.Conn) // after asking is closed: when the app closes, hasLeft must be right
	defer close(c.asking)
	for c.request() {
	}
}

// request passes on one request. It returns false if no other can follow.
func (c *conn) request() bool {
	req, err := c.client.request()
	if err == io.EOF {
		return false
	}
	x := c.proxy.turn(2)
	defer c.proxy.endDirection(x)
	x.raw = err != nil
	if !x.raw {
		x.Method, x.Target, x.SentHeader = req.Method, req.RequestURI, req.Header
	}
	select {
	case c.asked <- x:
	case <-c.unread: // the app's data belongs to no request
		c.proxy.endDirection(x)
	}
	if err == nil {
		if _, err := c.app.Write(readable(c.client.drain())); err != nil {
			return false
		}
		err = c.client.body(req.Body, c.app, &x.sent)
		x.whole.Store(true)
	}
	if err != nil || c.switched(x, req) { // the rest is not HTTP
		_ = c.client.copyRest(c.app, &x.sent)
		return false
	}
	return true
}

// switched reports whether the app accepted the request's change of protocol.
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

// answers passes on responses. It returns the turn of the first response that is not HTTP, nil if
// the app closed the connection.
func (c *conn) answers() *turn {
	for {
		x := c.nextTurn()
		if x == nil || x.raw || !c.answer(x) {
			return x
		}
		close(x.stays)
		c.proxy.endDirection(x)
	}
}

// nextTurn returns the turn that the app's next data belongs to, nil at the end of the data. If the
// app sends data before a request, that is a new raw turn: the data passes unchanged and answers no
// later request.
func (c *conn) nextTurn() *turn {
	if _, err := c.app.in.Peek(1); err != nil {
		return nil
	}
	select {
	case x := <-c.asked: // requests puts it here before it sends the request
		return x
	default:
		x := c.proxy.turn(1)
		x.raw = true
		return x
	}
}

// answer passes on the response to a request. It returns false if the response, or the data after
// it, is not HTTP.
func (c *conn) answer(x *turn) bool {
	for {
		resp, err := c.app.answer(x.Method)
		if err != nil {
			return false
		}
		s := resp.StatusCode
		switched := s == http.StatusSwitchingProtocols || x.Method == http.MethodConnect && s/100 == 2
		if s >= 200 || switched { // not an interim response
			x.Status, x.Header = s, resp.Header
		}
		head := c.app.drain()
		if c.proxy.Altering != nil && s >= 200 && x.Method != http.MethodConnect {
			return c.alter(x, resp, head) == nil
		}
		x.late = c.hasLeft()
		if _, err := c.client.Write(head); err != nil || switched {
			return false
		}
		if s >= 200 {
			return c.app.body(resp.Body, c.client, &x.got) == nil
		}
	}
}

// passRest passes on the rest of the app's data unchanged.
func (c *conn) passRest(x *turn) {
	defer c.proxy.endDirection(x)
	if c.app.copyRest(c.client, &x.got) == nil {
		closeWrite(c.client.Conn)
		<-c.asking
	} else if x.late { // nobody read the status
		x.Status, x.Header = 0, nil
	}
}
