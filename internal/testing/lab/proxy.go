package lab

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Proxy is a proxy between abl and the engine with its own socket. It can fail like an engine: it
// refuses, cuts or delays connections, or drops the response after the engine has acted.
type Proxy struct {
	Host string // for DOCKER_HOST

	t      testing.TB
	path   string
	engine string

	mu     sync.Mutex
	listen net.Listener
	over   bool // the test has ended
	conns  map[net.Conn]bool
	meets  func(line, kind string) bool // reports whether a request gets the fault; nil for no fault
	fault  Fault
	drops  int // number of requests with a fault
	delay  time.Duration
	named  map[string]string // names of containers and networks, by id
	kinds  []string          // of all requests so far, each once
}

// Fault is a failure of one request.
type Fault int

// The faults.
const (
	Lost    Fault = iota // the engine acts, and the response is lost
	Severed              // the connection is cut before the engine gets the request
	Refused              // as Severed, and new connections are refused for a while
	Halved               // the engine acts, and half of the response arrives
	Stuck                // the engine responds that it could not stop a container, and does nothing
	Late                 // the client gives up without a response, then the engine acts
)

// absence is how long connections are refused: longer than one attempt of abl to connect.
const absence = 250 * time.Millisecond

// NewProxy starts a proxy to the machine's engine.
func NewProxy(t testing.TB) *Proxy {
	t.Helper()
	return NewProxyTo(t, Socket())
}

// NewProxyTo starts a proxy to the engine that listens on a socket.
func NewProxyTo(t testing.TB, engine string) *Proxy {
	t.Helper()
	path := filepath.Join(SocketDir(t), "s")
	p := &Proxy{
		Host:   "unix://" + path,
		t:      t,
		path:   path,
		engine: engine,
		conns:  map[net.Conn]bool{},
		named:  map[string]string{},
	}
	p.Accept()
	t.Cleanup(func() {
		p.Refuse()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.over = true
	})
	return p
}

// Refuse cuts open connections and refuses new ones.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listen != nil {
		p.listen.Close()
		p.listen = nil
	}
	p.cut()
}

// Cut cuts open connections. New ones are accepted.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut()
}

func (p *Proxy) cut() {
	for c := range p.conns {
		c.Close()
	}
	clear(p.conns)
}

// Accept ends Refuse.
func (p *Proxy) Accept() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over || p.listen != nil {
		return
	}
	os.Remove(p.path)
	l, err := net.Listen("unix", p.path)
	if err != nil {
		p.t.Error(err)
		return
	}
	p.listen = l
	go p.serve(l)
}

// Delay delays every response by d.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// Drop loses the response to the next request whose first line contains text. The engine still
// acts on the request.
func (p *Proxy) Drop(text string) { p.Fail(text, Lost) }

// Fail applies a fault to the next request whose first line contains text.
func (p *Proxy) Fail(text string, f Fault) {
	p.plan(func(line, _ string) bool { return strings.Contains(line, text) }, f)
}

// FailKind applies a fault to the next request of a kind (see Kinds).
func (p *Proxy) FailKind(kind string, f Fault) {
	p.plan(func(_, k string) bool { return k == kind }, f)
}

func (p *Proxy) plan(meets func(line, kind string) bool, f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.meets, p.fault = meets, f
}

// Drops returns the number of requests that had a fault.
func (p *Proxy) Drops() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.drops
}

func (p *Proxy) serve(l net.Listener) {
	for {
		from, err := l.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("unix", p.engine)
		if err != nil {
			from.Close()
			continue
		}
		p.mu.Lock()
		p.conns[from], p.conns[to] = true, true
		p.mu.Unlock()
		c := &exchange{p: p, client: from, engine: to, answered: make(chan struct{})}
		go p.pass(to, from, c.request)
		go p.pass(from, to, c.response)
	}
}

// pass copies data until one end is closed. see inspects each piece and reports whether to
// forward it.
func (p *Proxy) pass(to, from net.Conn, see func([]byte) bool) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if !see(buf[:n]) {
				break
			}
			if _, err := to.Write(buf[:n]); err != nil {
				break
			}
		}
		if err != nil {
			break
		}
	}
	if c, ok := to.(*net.UnixConn); ok {
		_ = c.CloseWrite()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, from)
}
