package lab

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// exchange is one connection through a proxy: a request, its answer, and so on.
type exchange struct {
	p              *Proxy
	client, engine net.Conn

	once     sync.Once
	answered chan struct{} // closed when the first answer comes after a late request

	mu    sync.Mutex
	fault Fault  // of the request that is being answered
	met   bool   // it has one
	made  string // what the request makes, by its name
}

var (
	isRequest = regexp.MustCompile(`^(GET|HEAD|POST|PUT|DELETE) (?:/v1\.\d+)?(/[^ ?]*)(?:\?(\S*))? HTTP/`)
	isNamed   = regexp.MustCompile(`(?:^|&)name=([^&]+)|"Name":"([^"]+)"`)
	isMade    = regexp.MustCompile(`"Id":"([0-9a-f]{12,64})"`)
	isOurs    = regexp.MustCompile(`^abl-[0-9a-f]+-`)
	byChance  = regexp.MustCompile(`[A-Z2-7]{26}`) // what is of a replay
	isCall    = regexp.MustCompile(`^p\d+-(build|verify)-\d+\.\d+`)
)

// Kinds are the requests so far by method and path, in their order, each once. A
// path has no version, the names of things instead of their ids, and in these no
// number that changes from call to call.
func (p *Proxy) Kinds() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.kinds)
}

// kind is that of a request; the lock is held.
func (p *Proxy) kind(method, path string) string {
	parts := strings.Split(path, "/")
	if len(parts) > 2 && parts[1] == "images" {
		return method + " /images/IMAGE/" + parts[len(parts)-1]
	}
	for i, part := range parts {
		if name, known := p.named[part]; known {
			part = name
		}
		parts[i] = isCall.ReplaceAllString(isOurs.ReplaceAllString(byChance.ReplaceAllString(part, "replay"), ""), "$1")
	}
	return method + " " + strings.Join(parts, "/")
}

// asked looks at a request, and whether it goes on to the engine.
func (c *exchange) asked(piece []byte) bool {
	head := isRequest.FindSubmatch(piece)
	if head == nil {
		return true // the rest of one, or a stream
	}
	line, _, _ := bytes.Cut(piece, []byte("\r\n"))
	p := c.p
	p.mu.Lock()
	kind := p.kind(string(head[1]), string(head[2]))
	if !slices.Contains(p.kinds, kind) {
		p.kinds = append(p.kinds, kind)
	}
	fault, meets := p.fault, p.meets != nil && p.meets(string(line), kind)
	if meets {
		p.meets = nil
		if fault != Lost && fault != Halved {
			p.drops++
		}
	}
	p.mu.Unlock()
	c.mu.Lock()
	c.fault, c.met, c.made = fault, meets, ""
	if strings.HasSuffix(kind, "/create") {
		text := string(head[3])
		if text == "" {
			text = string(piece) // of a network the body has it
		}
		if found := isNamed.FindStringSubmatch(text); found != nil {
			c.made = found[1] + found[2]
		}
	}
	c.mu.Unlock()
	return !meets || c.befall(fault, piece)
}

// befall is what becomes of a request that meets a fault before its answer.
func (c *exchange) befall(f Fault, piece []byte) (goesOn bool) {
	switch f {
	case Lost, Halved:
		return true
	case Refused:
		c.p.Away()
		time.AfterFunc(absence, c.p.Back)
	case Stuck:
		const body = `{"message":"tried to kill container, but did not receive an exit event"}`
		_, _ = fmt.Fprintf(c.client, "HTTP/1.1 500 Internal Server Error\r\nContent-Type: application/json\r\n"+
			"Connection: close\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	case Late:
		rest, _ := io.ReadAll(c.client) // until it gives up
		_, _ = c.engine.Write(append(piece[:len(piece):len(piece)], rest...))
		<-c.answered
	}
	c.client.Close()
	return false
}

// answers loses an answer, or holds it up.
func (c *exchange) answers(piece []byte) bool {
	p := c.p
	c.mu.Lock()
	fault, met, made := c.fault, c.met, c.made
	c.mu.Unlock()
	p.mu.Lock()
	if id := isMade.FindSubmatch(piece); id != nil && made != "" {
		p.named[string(id[1])] = made
	}
	if met && (fault == Lost || fault == Halved) {
		p.drops++
	}
	d := p.delay
	p.mu.Unlock()
	switch {
	case !met:
		time.Sleep(d)
		return true
	case fault == Halved:
		_, _ = c.client.Write(piece[:len(piece)/2])
	case fault == Late:
		c.once.Do(func() { close(c.answered) })
		return false
	}
	c.client.Close()
	return false
}
