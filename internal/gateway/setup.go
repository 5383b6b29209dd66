// Package gateway is the one way out of a role's network: it holds the providers'
// keys, lets through what an agent needs and nothing else, counts the tokens and
// keeps budgets. It runs in a container of its own, is told everything on standard
// input and tells everything on standard output, a line of JSON each. How abl runs
// one, and what it makes of its log, is package sidecar's.
package gateway

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"abl/internal/gateway/filter"
	"abl/internal/gateway/meter"
	"abl/internal/prices"
)

// Secret is text that only its own wire shows.
type Secret string

// String hides the secret from whoever prints it.
func (Secret) String() string { return "[secret]" }

// GoString does so for %#v.
func (Secret) GoString() string { return "[secret]" }

// Setup is the first line on standard input.
type Setup struct {
	Listen    string       `json:"listen"` // "host:port"; port 0 takes a free one, which the ready line tells
	Call      Call         `json:"call"`
	Providers []Provider   `json:"providers"`
	Connect   []string     `json:"connect,omitempty"` // "host:port" of registries, exact
	Inside    []netip.Addr `json:"inside,omitempty"`  // addresses of the engine's machine: no tunnel leads there, be they public
	CA        string       `json:"ca,omitempty"`      // PEM, trusted besides the container's own
	Limits    Limits       `json:"limits,omitzero"`
}

// Call is who may use the gateway: one call of one role.
type Call struct {
	ID       string `json:"id"`    // the first part of every path
	Token    Secret `json:"token"` // what the role has for a key
	Deadline int64  `json:"deadline"`
	Budget   Budget `json:"budget,omitzero"`
}

// Budget is what the call may still spend, counted from its beginning. Nil is no
// bound; 0 admits nothing.
type Budget struct {
	Requests *int64  `json:"requests,omitempty"`
	Bounds   []Bound `json:"bounds,omitempty"` // all of them hold
}

// Bound is a cap on this call, or on more than it.
type Bound struct {
	Of         string      `json:"of"` // whose it is, in a person's words: call, phase, project
	Tokens     *int64      `json:"tokens,omitempty"`
	USD        *prices.USD `json:"usd,omitempty"`
	UsedTokens int64       `json:"used_tokens,omitempty"` // before this call
	UsedUSD    prices.USD  `json:"used_usd,omitempty"`
}

// Provider is one upstream and what may be asked of it.
type Provider struct {
	Name     string   `json:"name"`               // gemini, anthropic, openai-responses or openai-chat; the second part of every path
	Upstream string   `json:"upstream,omitempty"` // base address, with the version for OpenAI's; "" is the provider's own
	Key      Secret   `json:"key,omitempty"`      // "" where the upstream needs none
	Models   []string `json:"models"`             // exact names

	// Prices of models; one without is metered, and holds no budget in money.
	Prices map[string]prices.Price `json:"prices,omitempty"`
}

// Limits bound what a role can make the gateway do. 0 is the default.
type Limits struct {
	Body        int64 `json:"body,omitempty"`        // bytes of one request
	Bodies      int64 `json:"bodies,omitempty"`      // bytes of all requests held at once
	Answer      int64 `json:"answer,omitempty"`      // bytes of one answer
	Concurrent  int   `json:"concurrent,omitempty"`  // requests at once
	Connections int64 `json:"connections,omitempty"` // open at once
	HeadersMS   int64 `json:"headers_ms,omitempty"`  // until an upstream answers
	IdleMS      int64 `json:"idle_ms,omitempty"`     // between two pieces of an answer
	RequestMS   int64 `json:"request_ms,omitempty"`  // one request in all
	ReadMS      int64 `json:"read_ms,omitempty"`     // until a request's body is there
	Tunnel      int64 `json:"tunnel,omitempty"`      // bytes of one tunnel, both ways
	TunnelMS    int64 `json:"tunnel_ms,omitempty"`   // one tunnel in all
	Tunnels     int   `json:"tunnels,omitempty"`     // open at once
}

// filled returns the limits with the defaults in place.
func (l Limits) filled() Limits {
	const mib = 1 << 20
	minutes := func(n int64) int64 { return n * time.Minute.Milliseconds() }
	return Limits{
		Body: cmp.Or(l.Body, 20*mib), Bodies: cmp.Or(l.Bodies, 48*mib), Answer: cmp.Or(l.Answer, 64*mib),
		Concurrent: cmp.Or(l.Concurrent, 64), Connections: cmp.Or(l.Connections, 1024),
		HeadersMS: cmp.Or(l.HeadersMS, minutes(5)), IdleMS: cmp.Or(l.IdleMS, minutes(5)),
		RequestMS: cmp.Or(l.RequestMS, minutes(20)), ReadMS: cmp.Or(l.ReadMS, minutes(1)),
		Tunnel: cmp.Or(l.Tunnel, 2048*mib), TunnelMS: cmp.Or(l.TunnelMS, minutes(20)), Tunnels: cmp.Or(l.Tunnels, 32),
	}
}

// span is a limit in milliseconds as a duration.
func span(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// shortestToken is in characters; a shorter one could be guessed.
const shortestToken = 16

// rules are what the call may do. Errors name no value that may be a key.
func (s Setup) rules() (*filter.Rules, error) {
	r := &filter.Rules{
		Call: s.Call.ID, Token: filter.Hash(string(s.Call.Token)), MaxBody: s.Limits.Body,
		Providers: map[string]*filter.Provider{}, Connect: map[string]bool{},
	}
	if len(s.Call.Token) < shortestToken {
		return nil, fmt.Errorf("cannot use the call's token: want %d or more letters and digits", shortestToken)
	}
	for _, p := range s.Providers {
		api, known := filter.APIs[meter.API(p.Name)]
		u, err := url.Parse(strings.TrimRight(cmp.Or(p.Upstream, api.Base), "/"))
		switch {
		case !known:
			return nil, fmt.Errorf("cannot use provider %q: its API is unknown", p.Name)
		case slices.Contains(p.Models, ""):
			return nil, fmt.Errorf("cannot use provider %q: a model has no name", p.Name)
		case strings.ContainsAny(string(p.Key), "\r\n\x00") || strings.TrimSpace(string(p.Key)) != string(p.Key):
			// No header holds them. A provider would see, and could say, another key than is kept out of sight.
			return nil, fmt.Errorf("cannot use provider %q: its key has a line break, or a space at an end", p.Name)
		case err != nil || u.Host == "" || u.User != nil:
			return nil, fmt.Errorf("cannot use provider %q: its upstream is no plain address", p.Name) // which may hold a password
		}
		r.Providers[p.Name] = &filter.Provider{API: api, Upstream: u, Key: string(p.Key), Models: p.Models}
	}
	for _, target := range s.Connect {
		r.Connect[strings.ToLower(target)] = true
	}
	return r, nil
}

// canPrice refuses a budget in money that a model without a price would get around.
func (s Setup) canPrice(b Budget) error {
	if !slices.ContainsFunc(b.Bounds, func(one Bound) bool { return one.USD != nil }) {
		return nil
	}
	for _, p := range s.Providers {
		for _, model := range p.Models {
			if s.price(p.Name, model) == nil {
				return fmt.Errorf("cannot hold a budget in US dollars: %q of provider %q has no price", model, p.Name)
			}
		}
	}
	return nil
}

// price is what a provider's model costs, nil where nobody said.
func (s Setup) price(provider, model string) *prices.Price {
	for _, p := range s.Providers {
		if price, known := p.Prices[model]; known && p.Name == provider {
			return &price
		}
	}
	return nil
}

const (
	dialTime      = 20 * time.Second
	handshakeTime = 20 * time.Second

	// restTime is how long a connection to a provider is kept for the next request:
	// shorter than any server's own patience, for a request that meets a closing
	// connection is lost, since it cannot be sent twice.
	restTime = 15 * time.Second

	// requestSize, in bytes, lets a short prompt go out with its headers.
	requestSize = 8 << 10
)

// transport is the way to the providers. It speaks HTTP/1.1 alone, so that a
// stream that stalls or breaks holds up no other.
func (s Setup) transport() (*http.Transport, error) {
	roots, err := s.roots()
	if err != nil {
		return nil, err
	}
	t := &http.Transport{
		DialContext:            (&net.Dialer{Timeout: dialTime}).DialContext,
		TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    handshakeTime,
		ResponseHeaderTimeout:  span(s.Limits.HeadersMS),
		MaxResponseHeaderBytes: maxHeader,
		MaxIdleConns:           s.Limits.Concurrent,
		MaxIdleConnsPerHost:    s.Limits.Concurrent,
		IdleConnTimeout:        restTime,
		DisableCompression:     true,
		ReadBufferSize:         pieceSize,
		WriteBufferSize:        requestSize,
		Protocols:              new(http.Protocols),
	}
	t.Protocols.SetHTTP1(true)
	return t, nil
}

// roots are the authorities that a provider's certificate may come from.
func (s Setup) roots() (*x509.CertPool, error) {
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // an empty image has none
	}
	if s.CA != "" && !pool.AppendCertsFromPEM([]byte(s.CA)) {
		return nil, errors.New("cannot use the setup's ca: there is no certificate in it")
	}
	return pool, nil
}
