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
	over   bool // the test is
	conns  map[net.Conn]bool
	at     string // the next request with this in its first line meets the fault
	fault  Fault
	drops  int // how often that came to pass
	delay  time.Duration
}

// Fault is what befalls one request.
type Fault int

// The faults.
const (
	Lost    Fault = iota // the engine does it, and the answer is lost
	Severed              // the connection is cut before the engine hears of it
	Refused              // the same, and for a while nobody listens
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
	p := &Proxy{Host: "unix://" + path, t: t, path: path, engine: engine, conns: map[net.Conn]bool{}}
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
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at, p.fault = words, f
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
		lost := make(chan struct{}, 1)
		go p.pass(to, from, func(piece []byte) bool { return p.asked(piece, from, lost) })
		go p.pass(from, to, func([]byte) bool { return p.answers(from, lost) })
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

// asked looks at a request, and whether it goes on to the engine.
func (p *Proxy) asked(piece []byte, client net.Conn, lost chan<- struct{}) bool {
	p.mu.Lock()
	line, _, _ := bytes.Cut(piece, []byte("\r\n"))
	if p.at == "" || !bytes.Contains(line, []byte(p.at)) {
		p.mu.Unlock()
		return true
	}
	p.at = ""
	f := p.fault
	if f != Lost {
		p.drops++
	}
	p.mu.Unlock()
	switch f {
	case Lost:
		select {
		case lost <- struct{}{}:
		default:
		}
		return true
	case Refused:
		p.Away()
		time.AfterFunc(absence, p.Back)
	}
	client.Close()
	return false
}

// answers loses an answer, or holds it up.
func (p *Proxy) answers(client net.Conn, lost <-chan struct{}) bool {
	select {
	case <-lost:
		p.mu.Lock()
		p.drops++
		p.mu.Unlock()
		client.Close()
		return false
	default:
	}
	p.mu.Lock()
	d := p.delay
	p.mu.Unlock()
	time.Sleep(d)
	return true
}
