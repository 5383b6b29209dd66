package loopback

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"sync"

	"abl/orchestrator/dirs"
)

var pieces = sync.Pool{New: func() any { b := make([]byte, 16<<10); return &b }}

// ServeHTTP passes one request on.
func (f *Forwarder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, rest := split(r.RequestURI)
	sum := sha256.Sum256([]byte(token))
	switch {
	case subtle.ConstantTimeCompare(sum[:], f.sum[:]) != 1:
		refuse(w, http.StatusNotFound, "there is nothing here")
	case !sound(rest):
		refuse(w, http.StatusBadRequest, "abl forwards no path that is spelled like this")
	case r.Method == http.MethodConnect || r.Header.Get("Upgrade") != "":
		refuse(w, http.StatusMethodNotAllowed, "abl forwards requests, no connections")
	case r.ContentLength < 0:
		refuse(w, http.StatusLengthRequired, "abl forwards no body of unknown length")
	case r.ContentLength > maxBody:
		refuse(w, http.StatusRequestEntityTooLarge, "the body is longer than abl forwards")
	default:
		f.pass(w, r, rest)
	}
}

func (f *Forwarder) pass(w http.ResponseWriter, r *http.Request, rest string) {
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
	default:
		refuse(w, http.StatusServiceUnavailable, "abl forwards too many requests already")
		return
	}
	control := http.NewResponseController(w)
	// Otherwise net/http closes the request's body with the answer's first byte,
	// while the transport may still read it.
	if err := control.EnableFullDuplex(); err != nil {
		refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	answer, err := f.transport.RoundTrip(f.request(r, rest))
	if err != nil {
		w.Header().Set(dirs.NoAnswer, asked(err))
		refuse(w, http.StatusBadGateway, "the server on this machine's loopback gives no answer: "+err.Error())
		return
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusSwitchingProtocols {
		refuse(w, http.StatusBadGateway, "the server on this machine's loopback wants another protocol")
		return
	}
	h := w.Header()
	copyHeaders(h, answer.Header)
	delete(h, dirs.NoAnswer)                                // which is abl's own word
	for _, name := range []string{"Date", "Content-Type"} { // which net/http would add
		if _, there := h[name]; !there {
			h[name] = nil
		}
	}
	w.WriteHeader(answer.StatusCode)
	if !stream(w, control.Flush, answer.Body) {
		panic(http.ErrAbortHandler) // net/http's way to cut an answer, so that the gateway sees that there should be more
	}
}

// asked says whether a request that got no answer may have reached the server.
func asked(err error) string {
	if op := (*net.OpError)(nil); errors.As(err, &op) && op.Op == "dial" {
		return dirs.NotAsked
	}
	return dirs.Asked
}

// request is what the server gets to see.
func (f *Forwarder) request(r *http.Request, rest string) *http.Request {
	path, query, some := strings.Cut(rest, "?")
	to := &http.Request{
		Method: r.Method, Host: f.target.Host, Header: http.Header{"User-Agent": {""}}, // without one net/http would name itself
		URL: &url.URL{
			Scheme: f.target.Scheme, Host: f.target.Host, Opaque: f.target.Path + path, RawQuery: query, ForceQuery: some && query == "",
		},
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: r.Body, ContentLength: r.ContentLength,
	}
	if to.URL.Opaque == "" {
		to.URL.Opaque = "/"
	}
	copyHeaders(to.Header, r.Header)
	return to.WithContext(r.Context())
}

// stream passes each piece on at once, and says whether the answer came whole.
func stream(w io.Writer, flush func() error, from io.Reader) bool {
	buffer := pieces.Get().(*[]byte)
	defer pieces.Put(buffer)
	if flush() != nil { // headers go out though the first piece is late
		return false
	}
	for {
		n, err := from.Read(*buffer)
		if n > 0 {
			if _, werr := w.Write((*buffer)[:n]); werr != nil || flush() != nil {
				return false
			}
		}
		if err != nil {
			return err == io.EOF
		}
	}
}

// hops are the headers that concern one connection alone.
var hops = map[string]bool{
	"Connection": true, "Keep-Alive": true, "Proxy-Authenticate": true, "Proxy-Authorization": true, "Proxy-Connection": true,
	"Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true, "Expect": true,
}

func copyHeaders(to, from http.Header) {
	drop := map[string]bool{}
	for _, value := range from.Values("Connection") {
		for name := range strings.SplitSeq(value, ",") {
			drop[textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name))] = true
		}
	}
	for name, values := range from {
		if !hops[name] && !drop[name] {
			to[name] = values
		}
	}
}

func refuse(w http.ResponseWriter, status int, why string) {
	w.Header().Set("Connection", "close")
	http.Error(w, why, status)
}
