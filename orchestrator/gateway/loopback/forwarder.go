// Package loopback lets a gateway come to a server on this machine's loopback: a
// proxy of the person's, a model that runs here, a test server. abl listens at the
// address that it has on the gateway's way out, and passes on to that one server
// what comes with the right token.
package loopback

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"
)

const (
	shortestToken = 16  // characters; a shorter one could be guessed
	connections   = 256 // open at once; two gateways have 64 requests each under way
	requests      = 128 // under way at once
	maxBody       = 32 << 20
	maxHeader     = 64 << 10

	dialTime   = 10 * time.Second
	headerTime = 10 * time.Second // for a gateway to send its headers
	idleTime   = 5 * time.Minute  // a gateway's connection may wait for its next request
	// restTime is how long a connection to the server is kept: shorter than the
	// patience of common servers, which is 5 s.
	restTime = 3 * time.Second
)

// State is what a Forwarder needs to be where it was once abl comes back.
type State struct {
	Addr  netip.AddrPort `json:"addr"`
	Token string         `json:"token"`
}

// Forwarder passes requests on to one server.
type Forwarder struct {
	state  State
	target *url.URL
	sum    [sha256.Size]byte // of the token

	server    *http.Server
	transport *http.Transport
	slots     chan struct{}
	served    sync.WaitGroup
}

// NewToken is a token that nobody guesses.
func NewToken() string { return rand.Text() }

// Listen begins to forward from at, whose port may be 0 for a free one, to
// target, as Override gives it. roots are the authorities that an https target is
// trusted by, nil for the system's. It ends with ctx or by Close.
func Listen(ctx context.Context, at State, target *url.URL, roots *x509.CertPool) (*Forwarder, error) {
	if len(at.Token) < shortestToken || !plain(at.Token) {
		return nil, fmt.Errorf("cannot forward to this machine's loopback: the token has to have %d or more letters and digits", shortestToken)
	}
	if way, err := wayTo(target.Hostname()); err != nil || way != Forwarded {
		return nil, errors.New("cannot forward: the target is not on this machine's loopback")
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", at.Addr.String())
	if err != nil {
		return nil, fmt.Errorf("cannot listen for the gateway on this machine: %w", err)
	}
	at.Addr = l.Addr().(*net.TCPAddr).AddrPort()
	f := &Forwarder{state: at, target: target, sum: sha256.Sum256([]byte(at.Token)), slots: make(chan struct{}, requests)}
	f.transport = &http.Transport{
		DialContext:            (&net.Dialer{Timeout: dialTime}).DialContext,
		TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		MaxResponseHeaderBytes: maxHeader,
		MaxIdleConnsPerHost:    requests,
		IdleConnTimeout:        restTime,
		DisableCompression:     true,
		Protocols:              new(http.Protocols),
	}
	f.transport.Protocols.SetHTTP1(true)
	f.server = &http.Server{
		Handler: f, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		DisableGeneralOptionsHandler: true, ErrorLog: log.New(io.Discard, "", 0), BaseContext: func(net.Listener) context.Context { return ctx },
	}
	f.served.Go(func() { _ = f.server.Serve(newBounded(l, connections)) })
	context.AfterFunc(ctx, func() { _ = f.server.Close() })
	return f, nil
}

// URL is the upstream for the gateway's setup. It holds the token.
func (f *Forwarder) URL() string { return "http://" + f.state.Addr.String() + "/" + f.state.Token }

// State is where to come back to.
func (f *Forwarder) State() State { return f.state }

// Close ends it, and what is under way.
func (f *Forwarder) Close() error {
	err := f.server.Close()
	f.served.Wait()
	f.transport.CloseIdleConnections()
	return err
}

// bounded turns connections away that are too many.
type bounded struct {
	net.Listener
	free chan struct{}
}

func newBounded(l net.Listener, most int) *bounded {
	return &bounded{Listener: l, free: make(chan struct{}, most)}
}

func (b *bounded) Accept() (net.Conn, error) {
	for {
		c, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case b.free <- struct{}{}:
			return &conn{Conn: c, left: sync.OnceFunc(func() { <-b.free })}, nil
		default:
			c.Close()
		}
	}
}

type conn struct {
	net.Conn
	left func()
}

func (c *conn) Close() error {
	defer c.left()
	return c.Conn.Close()
}
