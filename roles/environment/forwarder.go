package environment

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
	// restTime is the idle time after which a connection to the server is closed. It is shorter than
	// the timeout of common servers, which is 5 s.
	restTime = 3 * time.Second
	idleTime = 5 * time.Minute // a gateway's connection may wait for its next request

	maxHeader      = 64 << 10
	maxConnections = 256 // open at once; two gateways have 64 requests each under way
)

// listening is the address and the token of a forwarder. A new process of abl needs them to listen in
// the same place. Without a token the forwarder makes one.
type listening struct {
	Addr  netip.AddrPort `json:"addr"`
	Token string         `json:"token"`
}

// forwarder is the route from a gateway to a server on this machine's loopback, such as a proxy or a
// model server, which no container can reach. It listens on this machine's address in the egress
// network of the gateways, and only accepts requests with its token.
type forwarder struct {
	http.Server
	At listening
}

// quiet discards messages of net/http.
var quiet = log.New(io.Discard, "", 0)

// forwardServer forwards requests from the address at, whose port may be 0 for a free one, to target. roots
// are the authorities for an https target, nil for the system's. It stops when ctx is done, or by
// Close.
func forwardServer(ctx context.Context, at listening, target *url.URL, roots *x509.CertPool) (*forwarder, error) {
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		FlushInterval: -1,
		ErrorLog:      quiet,
		ErrorHandler:  noAnswer,
		// Only abl may set this header.
		ModifyResponse: func(r *http.Response) error { r.Header.Del(gateway.NoAnswer); return nil },
		Transport: &http.Transport{
			TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, // turns HTTP/2 off
			IdleConnTimeout:        restTime,
			MaxIdleConnsPerHost:    128,
			DisableCompression:     true,
			MaxResponseHeaderBytes: maxHeader,
		},
	}
	return listenFor(ctx, at, func(w http.ResponseWriter, r *http.Request, is func(token string) bool) bool {
		token, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		if !is(token) {
			return false
		}
		r.URL.Path, r.URL.RawPath = "/"+rest, ""
		// Otherwise net/http closes the body of the request at the first byte of the response,
		// while the transport may still read it.
		_ = http.NewResponseController(w).EnableFullDuplex()
		w.Header()["Content-Type"] = nil // otherwise net/http may guess a missing one
		proxy.ServeHTTP(w, r)
		return true
	})
}

// forwardProxy is forwardServer for a target that is a proxy. It allows tunnels to any host.
func forwardProxy(ctx context.Context, at listening, target *url.URL, roots *x509.CertPool) (*forwarder, error) {
	return listenFor(ctx, at, func(w http.ResponseWriter, r *http.Request, is func(token string) bool) bool {
		auth := http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}
		_, password, _ := auth.BasicAuth()
		if r.Method != http.MethodConnect || !is(password) {
			return false
		}
		gateway.Relay(ctx, w, gateway.Dialer{Roots: roots}, target, r.Host)
		return true
	})
}

// listenFor serves requests with handle, which returns false for a request without the token.
func listenFor(ctx context.Context, at listening,
	handle func(w http.ResponseWriter, r *http.Request, is func(token string) bool) bool) (*forwarder, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", at.Addr.String())
	if err != nil {
		return nil, fmt.Errorf("cannot listen for the gateway on this machine: %w", err)
	}
	at.Addr = l.Addr().(*net.TCPAddr).AddrPort()
	if at.Token == "" {
		at.Token = rand.Text()
	}
	is := func(token string) bool { return subtle.ConstantTimeCompare([]byte(token), []byte(at.Token)) == 1 }
	f := &forwarder{At: at, Server: http.Server{
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          quiet,
		ConnState:         gateway.Bounded(maxConnections),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !handle(w, r, is) {
				w.Header().Set("Connection", "close")
				http.NotFound(w, r)
			}
		}),
	}}
	go func() { _ = f.Serve(l) }()
	context.AfterFunc(ctx, func() { _ = f.Close() })
	return f, nil
}

// ProxyURL returns the address of the proxy for the gateway's setup. It contains the token.
func (f *forwarder) ProxyURL() string { return "http://abl:" + f.At.Token + "@" + f.At.Addr.String() }

// URL returns the upstream for the gateway's setup. It contains the token.
func (f *forwarder) URL() string { return "http://" + f.At.Addr.String() + "/" + f.At.Token }

// noAnswer reports to the gateway whether a request without a response may have reached the server.
func noAnswer(w http.ResponseWriter, _ *http.Request, err error) {
	asked := gateway.Asked
	if gateway.FailedToDial(err) {
		asked = gateway.NotAsked
	}
	w.Header().Set(gateway.NoAnswer, asked)
	http.Error(w, "the server on this machine's loopback does not respond: "+err.Error(), http.StatusBadGateway)
}
