package sidecar

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"abl/internal/helper"
)

const (
	headerTime = 10 * time.Second // for a gateway to send its headers
	// restTime is how long a connection to the server is kept: shorter than the
	// patience of common servers, which is 5 s.
	restTime = 3 * time.Second
	idleTime = 5 * time.Minute // a gateway's connection may wait for its next request

	maxConnections = 256 // open at once; two gateways have 64 requests each under way
	maxHeader      = 64 << 10
	maxBody        = 32 << 20
)

// Listening is what a Forwarder needs to be where it was once abl comes back. Without a
// token it gets a new one.
type Listening struct {
	Addr  netip.AddrPort `json:"addr"`
	Token string         `json:"token"`
}

// Forwarder lets gateways come to a server on this machine's loopback: a proxy of the
// person's, a model that runs here. It listens at the address that this machine has on
// the gateways' way out, and passes on to that one server what comes with its token.
type Forwarder struct {
	at     Listening
	target *url.URL
	server http.Server
	proxy  httputil.ReverseProxy
	open   atomic.Int64 // connections
}

// Listen begins to forward from at, whose port may be 0 for a free one, to target, as
// Override gives it. roots are the authorities that an https target is trusted by, nil
// for the system's. It ends with ctx or by Close.
func Listen(ctx context.Context, at Listening, target *url.URL, roots *x509.CertPool) (*Forwarder, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", at.Addr.String())
	if err != nil {
		return nil, fmt.Errorf("cannot listen for the gateway on this machine: %w", err)
	}
	at.Addr = l.Addr().(*net.TCPAddr).AddrPort()
	if at.Token == "" {
		at.Token = rand.Text()
	}
	f := &Forwarder{at: at, target: target}
	quiet := log.New(io.Discard, "", 0)
	f.proxy = httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(f.target) }, FlushInterval: -1, ErrorLog: quiet, ErrorHandler: noAnswer,
		ModifyResponse: func(r *http.Response) error { r.Header.Del(helper.NoAnswer); return nil }, // which is abl's own word
		Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, // which keeps HTTP/2 away, too
			IdleConnTimeout: restTime, MaxIdleConnsPerHost: 128, DisableCompression: true, MaxResponseHeaderBytes: maxHeader,
		},
	}
	f.server = http.Server{Handler: f, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader, ErrorLog: quiet, ConnState: f.count}
	go func() { _ = f.server.Serve(l) }()
	context.AfterFunc(ctx, func() { _ = f.server.Close() })
	return f, nil
}

// count turns connections away that are too many.
func (f *Forwarder) count(c net.Conn, s http.ConnState) {
	switch s {
	case http.StateNew:
		if f.open.Add(1) > maxConnections {
			c.Close()
		}
	case http.StateClosed, http.StateHijacked:
		f.open.Add(-1)
	}
}

// URL is the upstream for the gateway's setup. It holds the token.
func (f *Forwarder) URL() string { return "http://" + f.at.Addr.String() + "/" + f.at.Token }

// Listening is where to come back to.
func (f *Forwarder) Listening() Listening { return f.at }

// Close ends it, and what is under way.
func (f *Forwarder) Close() error { return f.server.Close() }

// ServeHTTP passes one request on.
func (f *Forwarder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	rest = "/" + rest
	odd := r.URL.RawPath != "" || path.Clean(rest) != rest || strings.ContainsAny(rest, `;\`)
	switch {
	case subtle.ConstantTimeCompare([]byte(token), []byte(f.at.Token)) != 1:
		refuse(w, http.StatusNotFound, "there is nothing here")
	case odd || r.Method == http.MethodConnect || r.Header.Get("Upgrade") != "":
		refuse(w, http.StatusBadRequest, "abl forwards requests with plain paths alone")
	case r.ContentLength > maxBody:
		refuse(w, http.StatusRequestEntityTooLarge, tooLong)
	default:
		r.URL.Path = rest
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		// Otherwise net/http closes the request's body with the answer's first byte,
		// while the transport may still read it.
		_ = http.NewResponseController(w).EnableFullDuplex()
		f.proxy.ServeHTTP(w, r)
	}
}

const tooLong = "the body is longer than abl forwards"

func refuse(w http.ResponseWriter, status int, words string) {
	w.Header().Set("Connection", "close")
	http.Error(w, words, status)
}

// noAnswer tells the gateway whether a request that got no answer may have reached the server.
func noAnswer(w http.ResponseWriter, _ *http.Request, err error) {
	if long := (*http.MaxBytesError)(nil); errors.As(err, &long) {
		refuse(w, http.StatusRequestEntityTooLarge, tooLong)
		return
	}
	asked := helper.Asked
	if op := (*net.OpError)(nil); errors.As(err, &op) && op.Op == "dial" {
		asked = helper.NotAsked
	}
	w.Header().Set(helper.NoAnswer, asked)
	http.Error(w, "the server on this machine's loopback gives no answer: "+err.Error(), http.StatusBadGateway)
}
