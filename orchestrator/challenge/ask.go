package challenge

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"time"
)

// exchange makes the record of a request that is about to be sent on. Bodies
// are asked for as they are, for no proxy can change what it cannot read.
func (c *conn) exchange(raw []byte, req *http.Request) *exchange {
	x := &exchange{
		method: req.Method, path: req.URL.EscapedPath(), query: req.URL.RawQuery != "", host: req.Host, header: req.Header,
		head: withoutHeader(raw, "Accept-Encoding"), sent: make(chan struct{}), stays: make(chan struct{}),
		upgrade: req.Method == http.MethodConnect || req.Header.Get("Upgrade") != "",
	}
	c.watch(x)
	return x
}

// settle does what follows a request that the app carried out, before the
// client hears of it. data is the answer's body where it was read.
func (c *conn) settle(x *exchange, a *answer, data []byte) {
	if a.status >= 400 {
		return
	}
	m := c.Mutation
	switch {
	case m.Name == Control:
		for _, other := range Mutations() {
			if other.repeat == x.method || other.forget != nil && other.forget(x.method) {
				c.could(other.Name)
			}
		}
	case m.repeat == x.method:
		c.repeat(x)
	case m.forget != nil && m.forget(x.method):
		c.forget(x, a, data)
	case m.forget != nil && writes(x.method):
		c.stale.drop(x.path)
	}
}

func writes(method string) bool {
	return slices.Contains([]string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}, method)
}

// repeat sends a request a second time; the client never hears of the answer.
func (c *conn) repeat(x *exchange) {
	late := time.NewTimer(askTime)
	defer late.Stop()
	select {
	case <-x.sent:
	case <-late.C: // the app did not wait for its end either
		return
	}
	if x.body == nil {
		return
	}
	head := withLength(withoutHeader(withoutHeader(x.head, "Expect"), "Connection"), len(x.body))
	if said, ok := c.side(slices.Concat(withHeader(head, "Connection", "close"), x.body), x.method); ok && said.status < 300 {
		c.applied()
	}
}

// ask asks for an address as the client of a request would.
func (c *conn) ask(x *exchange, path string) (saved, bool) {
	header := x.header.Clone()
	for _, name := range []string{
		"Accept-Encoding", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Expect", "If-Match", "If-Modified-Since",
		"If-None-Match", "If-Unmodified-Since", "Keep-Alive", "Range", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	} {
		header.Del(name)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n", path, x.host)
	if header.Write(&b) != nil {
		return saved{}, false
	}
	b.WriteString("\r\n")
	return c.side(b.Bytes(), http.MethodGet)
}

// side makes a request of the proxy's own, on a connection of its own.
func (c *conn) side(request []byte, method string) (s saved, ok bool) {
	app, err := (&net.Dialer{Timeout: askTime}).DialContext(c.ctx, "tcp", c.To)
	if err != nil {
		return s, false
	}
	defer app.Close()
	if app.SetDeadline(time.Now().Add(askTime)) != nil {
		return s, false
	}
	if _, err := app.Write(request); err != nil {
		return s, false
	}
	r := bufio.NewReaderSize(app, lineSize)
	raw, err := readHead(r)
	if err != nil {
		return s, false
	}
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(raw)), &http.Request{Method: method})
	if err != nil || resp.StatusCode < 200 {
		return s, false
	}
	var body limited
	if err := copyBody(io.Discard, &body, r, answerFraming(method, resp)); err != nil || body.over {
		return s, false
	}
	raw = withoutHeader(withoutHeader(raw, "Connection"), "Keep-Alive")
	return saved{status: resp.StatusCode, head: withLength(raw, body.Len()), body: body.Bytes()}, true
}

// limited keeps what fits.
type limited struct {
	bytes.Buffer
	over bool
}

func (l *limited) Write(p []byte) (int, error) {
	if l.over = l.over || l.Len()+len(p) > maxSaved; l.over {
		return len(p), nil
	}
	return l.Buffer.Write(p)
}
