package sidecar

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"abl/internal/gateway"
)

const (
	headerTime = 10 * time.Second // for a gateway to send its headers
	// restTime is how long a connection to the server is kept: shorter than the
	// patience of common servers, which is 5 s.
	restTime = 3 * time.Second
	idleTime = 5 * time.Minute // a gateway's connection may wait for its next request

	maxHeader      = 64 << 10
	maxConnections = 256 // open at once; two gateways have 64 requests each under way
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
	http.Server
	At Listening // where to come back to
}

// Listen begins to forward from at, whose port may be 0 for a free one, to target. roots are the authorities that an https target is trusted by, nil
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
	quiet := log.New(io.Discard, "", 0)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, FlushInterval: -1, ErrorLog: quiet, ErrorHandler: noAnswer,
		// This header is abl's own word.
		ModifyResponse: func(r *http.Response) error { r.Header.Del(gateway.NoAnswer); return nil },
		Transport: &http.Transport{
			// Roots of its own keep HTTP/2 away, too.
			TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			IdleConnTimeout: restTime, MaxIdleConnsPerHost: 128, DisableCompression: true, MaxResponseHeaderBytes: maxHeader,
		},
	}
	// What comes with the token is a gateway's, which knows the paths and bounds bodies.
	pass := func(w http.ResponseWriter, r *http.Request) {
		token, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		if subtle.ConstantTimeCompare([]byte(token), []byte(at.Token)) != 1 {
			w.Header().Set("Connection", "close")
			http.NotFound(w, r)
			return
		}
		r.URL.Path, r.URL.RawPath = "/"+rest, ""
		// Otherwise net/http closes the request's body with the answer's first byte,
		// while the transport may still read it.
		_ = http.NewResponseController(w).EnableFullDuplex()
		proxy.ServeHTTP(w, r)
	}
	f := &Forwarder{http.Server{
		Handler: http.HandlerFunc(pass), ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader, ErrorLog: quiet,
		ConnState: gateway.Bounded(maxConnections),
	}, at}
	go func() { _ = f.Serve(l) }()
	context.AfterFunc(ctx, func() { _ = f.Close() })
	return f, nil
}

// ListenProxy is Listen for a target that is a proxy: it passes on tunnels, to any host.
func ListenProxy(ctx context.Context, at Listening, target *url.URL, roots *x509.CertPool) (*Forwarder, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", at.Addr.String())
	if err != nil {
		return nil, fmt.Errorf("cannot listen for the gateway on this machine: %w", err)
	}
	at.Addr = l.Addr().(*net.TCPAddr).AddrPort()
	if at.Token == "" {
		at.Token = rand.Text()
	}
	f := &Forwarder{http.Server{ReadHeaderTimeout: headerTime, MaxHeaderBytes: maxHeader, ErrorLog: log.New(io.Discard, "", 0), ConnState: gateway.Bounded(maxConnections)}, at}
	f.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := proxyAuth(r)
		if r.Method != http.MethodConnect || subtle.ConstantTimeCompare([]byte(password), []byte(at.Token)) != 1 {
			w.Header().Set("Connection", "close")
			http.NotFound(w, r)
			return
		}
		gateway.Relay(ctx, w, gateway.Dialer{Roots: roots}, target, r.Host)
	})
	go func() { _ = f.Serve(l) }()
	context.AfterFunc(ctx, func() { _ = f.Close() })
	return f, nil
}

// proxyAuth reads the user and the password that a client sends to a proxy.
func proxyAuth(r *http.Request) (user, password string, ok bool) {
	return (&http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}).BasicAuth()
}

// ProxyURL is the proxy's address for the gateway's setup. It holds the token.
func (f *Forwarder) ProxyURL() string { return "http://abl:" + f.At.Token + "@" + f.At.Addr.String() }

// URL is the upstream for the gateway's setup. It holds the token.
func (f *Forwarder) URL() string { return "http://" + f.At.Addr.String() + "/" + f.At.Token }

// noAnswer tells the gateway whether a request that got no answer may have reached the server.
func noAnswer(w http.ResponseWriter, _ *http.Request, err error) {
	asked := gateway.Asked
	if gateway.FailedToDial(err) {
		asked = gateway.NotAsked
	}
	w.Header().Set(gateway.NoAnswer, asked)
	http.Error(w, "the server on this machine's loopback gives no answer: "+err.Error(), http.StatusBadGateway)
}
