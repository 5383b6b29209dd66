package lab

import (
	"bytes"
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
	conns  map[net.Conn]bool
	drop   string // the answer to the next request with this in its first line is lost
	drops  int    // how often that came to pass
	delay  time.Duration
}

// NewProxy starts one that passes everything on.
func NewProxy(t testing.TB) *Proxy {
	t.Helper()
	engine := "/var/run/docker.sock"
	if path, ok := strings.CutPrefix(os.Getenv("DOCKER_HOST"), "unix://"); ok {
		engine = path
	}
	dir, err := os.MkdirTemp("", "abl-px") // a test's own folder has too long a name for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	p := &Proxy{Host: "unix://" + path, t: t, path: path, engine: engine, conns: map[net.Conn]bool{}}
	p.Back()
	t.Cleanup(p.Away)
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
	os.Remove(p.path)
	l, err := net.Listen("unix", p.path)
	if err != nil {
		p.t.Fatal(err)
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
func (p *Proxy) Drop(words string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop = words
}

// Drops is how many answers were lost.
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
		lost := make(chan struct{}, 1)
		go p.pass(to, from, func(piece []byte) { p.asked(piece, lost) })
		go p.pass(from, to, func([]byte) { p.answers(from, lost) })
	}
}

// pass copies until one end is closed; see looks at each piece before it goes on.
func (p *Proxy) pass(to, from net.Conn, see func([]byte)) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			see(buf[:n])
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

// asked notes a request whose answer is to be lost.
func (p *Proxy) asked(piece []byte, lost chan<- struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	line, _, _ := bytes.Cut(piece, []byte("\r\n"))
	if p.drop == "" || !bytes.Contains(line, []byte(p.drop)) {
		return
	}
	p.drop = ""
	select {
	case lost <- struct{}{}:
	default:
	}
}

// answers loses an answer, or holds it up.
func (p *Proxy) answers(client net.Conn, lost <-chan struct{}) {
	select {
	case <-lost:
		p.mu.Lock()
		p.drops++
		p.mu.Unlock()
		client.Close()
		return
	default:
	}
	p.mu.Lock()
	d := p.delay
	p.mu.Unlock()
	time.Sleep(d)
}
