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

// Proxy stands between abl and the engine, at a socket of its own, and fails as an
// engine can: it refuses, cuts, delays, or has the engine do what it was asked and
// keeps the answer.
type Proxy struct {
	Host string // for DOCKER_HOST

	t      testing.TB
	path   string
	engine string

	mu     sync.Mutex
	listen net.Listener
	over   bool // the test is
	conns  map[net.Conn]bool
	meets  func(line, kind string) bool // the next such request meets the fault; nil for none
	fault  Fault
	drops  int // how often that came to pass
	delay  time.Duration
	named  map[string]string // what a container or network was called, by its id
	kinds  []string          // of all requests so far, each once
}

// Fault is what befalls one request.
type Fault int

// The faults.
const (
	Lost    Fault = iota // the engine does it, and the answer is lost
	Severed              // the connection is cut before the engine hears of it
	Refused              // the same, and for a while nobody listens
	Halved               // the engine does it, and half of the answer arrives
	Stuck                // the engine responds that it could not stop a container, and does nothing
	Late                 // nobody answers until the client gives up; then the engine does it
)

// absence is how long nobody listens: more than one attempt of abl's to connect.
const absence = 250 * time.Millisecond

// NewProxy starts one that passes everything on to the machine's engine.
func NewProxy(t testing.TB) *Proxy {
	t.Helper()
	engine := "/var/run/docker.sock"
	if path, ok := strings.CutPrefix(os.Getenv("DOCKER_HOST"), "unix://"); ok {
		engine = path
	}
	return NewProxyTo(t, engine)
}

// NewProxyTo starts one before the engine that listens on a socket.
func NewProxyTo(t testing.TB, engine string) *Proxy {
	t.Helper()
	dir, err := os.MkdirTemp("", "abl-px") // a test's own folder has too long a name for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	p := &Proxy{Host: "unix://" + path, t: t, path: path, engine: engine, conns: map[net.Conn]bool{}, named: map[string]string{}}
	p.Back()
	t.Cleanup(func() {
		p.Away()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.over = true
	})
	return p
}

// Away refuses every connection and cuts those that are open.
func (p *Proxy) Away() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listen != nil {
		p.listen.Close()
		p.listen = nil
	}
	p.cut()
}

// Cut cuts what is open and goes on.
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

// Back ends an absence.
func (p *Proxy) Back() {
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

// Delay holds every answer up.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// Drop loses the answer to the next request whose first line has this in it: the
// engine has done it all the same.
func (p *Proxy) Drop(words string) { p.Fail(words, Lost) }

// Fail lets a fault befall the next request whose first line has this in it.
func (p *Proxy) Fail(words string, f Fault) {
	p.befall(func(line, _ string) bool { return strings.Contains(line, words) }, f)
}

// FailKind lets a fault befall the next request of a kind; see Kinds.
func (p *Proxy) FailKind(kind string, f Fault) {
	p.befall(func(_, k string) bool { return k == kind }, f)
}

func (p *Proxy) befall(meets func(line, kind string) bool, f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.meets, p.fault = meets, f
}

// Drops is how many requests met their fault.
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
		go p.pass(to, from, c.asked)
		go p.pass(from, to, c.answers)
	}
}

// pass copies until one end is closed; see looks at each piece before it goes on, and
// says whether it does.
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
