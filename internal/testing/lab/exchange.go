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

// exchange is one connection through a proxy, with its requests and responses.
type exchange struct {
	p              *Proxy
	client, engine net.Conn

	once     sync.Once
	answered chan struct{} // closed when the first response to a late request arrives

	mu    sync.Mutex
	fault Fault  // of the current request
	met   bool   // the current request has a fault
	made  string // the name of the object that the request creates
}

var (
	isRequest = regexp.MustCompile(`^(GET|HEAD|POST|PUT|DELETE) (?:/v1\.\d+)?(/[^ ?]*)(?:\?(\S*))? HTTP/`)
	isNamed   = regexp.MustCompile(`(?:^|&)name=([^&]+)|"Name":"([^"]+)"`)
	isMade    = regexp.MustCompile(`"Id":"([0-9a-f]{12,64})"`)
	isOurs    = regexp.MustCompile(`^abl-[0-9a-f]+-`)
	isRandom  = regexp.MustCompile(`[A-Z2-7]{26}`) // the random part of a replay's name
	isCall    = regexp.MustCompile(`^p\d+-(build|verify)-\d+\.\d+`)
)

// Kinds returns the distinct requests so far as METHOD PATH, in order of their first use. A path
// has no API version, names instead of ids, and no numbers that change from call to call.
func (p *Proxy) Kinds() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.kinds)
}

// kind returns the kind of a request. The caller holds the lock.
func (p *Proxy) kind(method, path string) string {
	parts := strings.Split(path, "/")
	if len(parts) > 2 && parts[1] == "images" {
		return method + " /images/IMAGE/" + parts[len(parts)-1]
	}
	for i, part := range parts {
		if name, known := p.named[part]; known {
			part = name
		}
		parts[i] = isCall.ReplaceAllString(isOurs.ReplaceAllString(isRandom.ReplaceAllString(part, "replay"), ""), "$1")
	}
	return method + " " + strings.Join(parts, "/")
}

// request inspects a request and reports whether to forward it to the engine.
func (c *exchange) request(piece []byte) bool {
	head := isRequest.FindSubmatch(piece)
	if head == nil {
		return true // the rest of a request, or a stream
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
			text = string(piece) // the name of a network is in the body
		}
		if found := isNamed.FindStringSubmatch(text); found != nil {
			c.made = found[1] + found[2]
		}
	}
	c.mu.Unlock()
	return !meets || c.interrupt(fault, piece)
}

// interrupt applies a fault that happens before the response, and reports whether to forward the
// request.
func (c *exchange) interrupt(f Fault, piece []byte) (forward bool) {
	switch f {
	case Lost, Halved:
		return true
	case Refused:
		c.p.Refuse()
		time.AfterFunc(absence, c.p.Accept)
	case Stuck:
		const body = `{"message":"tried to kill container, but did not receive an exit event"}`
		_, _ = fmt.Fprintf(c.client, "HTTP/1.1 500 Internal Server Error\r\nContent-Type: application/json\r\n"+
			"Connection: close\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	case Late:
		rest, _ := io.ReadAll(c.client) // until the client gives up
		_, _ = c.engine.Write(append(piece[:len(piece):len(piece)], rest...))
		<-c.answered
	}
	c.client.Close()
	return false
}

// response drops or delays a response, and reports whether to forward it.
func (c *exchange) response(piece []byte) bool {
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
