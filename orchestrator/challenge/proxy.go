package challenge

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"abl/orchestrator/dirs"
)

// dialTime bounds how long the app may take to accept a connection.
const dialTime = 10 * time.Second

// Proxy passes on to the app, and changes its answers in one way. What is not
// HTTP/1 passes as it is, and so does a connection that becomes something else.
type Proxy struct {
	To       string // address of the app
	Mutation Mutation
	Tell     func(dirs.Mutated) // called for the first change, for each thing that could be changed, and at the end

	mu     sync.Mutex
	report dirs.Mutated
	held   chan struct{}
	stale  stale
}

// Serve serves until ctx ends.
func (p *Proxy) Serve(ctx context.Context, l net.Listener) error {
	p.held = make(chan struct{}, maxHeld)
	p.report.Mutation = p.Mutation.Name
	err := serve(ctx, l, p.connect)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Tell(p.report)
	return err
}

// note changes the report, and tells it when note says so.
func (p *Proxy) note(change func(*dirs.Mutated) (tell bool)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if change(&p.report) {
		p.Tell(p.report)
	}
}

func (p *Proxy) applied() {
	p.note(func(r *dirs.Mutated) bool { r.Applied++; return r.Applied == 1 })
}

// conn is one connection of a client, with its own to the app.
type conn struct {
	*Proxy
	ctx          context.Context
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
	path    string // without a query
	query   bool
	host    string
	header  http.Header
	head    []byte
	body    []byte        // nil when it is not needed, or too long
	sent    chan struct{} // closed when all of it was sent
	upgrade bool          // it asks for another protocol
	stays   chan struct{} // closed when it did not get it
	before  []watched
}

func (p *Proxy) connect(ctx context.Context, client net.Conn) {
	app, err := (&net.Dialer{Timeout: dialTime}).DialContext(ctx, "tcp", p.To)
	if err != nil {
		return // as if the app had closed it
	}
	defer app.Close()
	stop := context.AfterFunc(ctx, func() { app.Close() })
	defer stop()
	c := &conn{
		Proxy: p, ctx: ctx, client: client, app: app,
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
		if err != nil {
			if c.push(&exchange{raw: true}) {
				_, _ = c.app.Write(raw)
				_, _ = io.Copy(c.app, c.fromClient)
			}
			return
		}
		x := c.exchange(raw, req)
		if !c.push(x) || !c.send(x, requestFraming(req)) {
			return
		}
		if x.upgrade && c.switched(x) {
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

// send sends a request on, and keeps its body where it will be sent again.
func (c *conn) send(x *exchange, f framing) bool {
	defer close(x.sent)
	if _, err := c.app.Write(x.head); err != nil {
		return false
	}
	if c.Mutation.repeat != x.method || !c.hold() {
		return c.sendBody(io.Discard, f)
	}
	defer c.free()
	t := &tentative{to: io.Discard}
	whole := c.sendBody(dataSide{t}, f)
	if whole && !t.gone {
		x.body = append([]byte{}, t.data.Bytes()...)
	}
	return whole
}

// sendBody sends a body on, and what follows one that is none.
func (c *conn) sendBody(data io.Writer, f framing) bool {
	err := copyBody(c.app, data, c.fromClient, f)
	if err != nil {
		_, _ = io.Copy(c.app, c.fromClient)
	}
	return err == nil
}

// hold takes a place for a body; without one it streams.
func (p *Proxy) hold() bool {
	select {
	case p.held <- struct{}{}:
		return true
	default:
		return false
	}
}

func (p *Proxy) free() { <-p.held }

func closeWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}
