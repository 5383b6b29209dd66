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
	"strings"
	"time"

	"abl/internal/gateway/meter"
	"abl/internal/prices"
)

// Secret is text that only its own wire shows.
type Secret string

// String hides the secret from whoever prints it.
func (Secret) String() string { return "[secret]" }

// GoString does so for %#v.
func (Secret) GoString() string { return "[secret]" }

// fits reports whether a header can hold the secret as it is. Otherwise a provider would see,
// and could repeat, another text than the gateway keeps out of sight.
func (s Secret) fits() bool {
	return !strings.ContainsAny(string(s), "\r\n\x00") && strings.TrimSpace(string(s)) == string(s)
}

// Setup is the first line on standard input.
type Setup struct {
	// "host:port"; port 0 takes a free one, which the ready line tells.
	Listen    string     `json:"listen"`
	Call      Call       `json:"call"`
	Providers []Provider `json:"providers"`
	Connect   []string   `json:"connect,omitempty"` // "host:port" of registries, exact
	Private   []string   `json:"private,omitempty"` // those of Connect that may have private addresses
	Proxies   Proxies    `json:"proxies,omitzero"`
	// No request of the run had an answer yet: after a few that reached nobody all others are
	// refused, so that the agent ends.
	First bool `json:"first,omitempty"`
	// Addresses of the engine's machine: no tunnel leads there, be they public.
	Inside []netip.Addr `json:"inside,omitempty"`
	CA     string       `json:"ca,omitempty"` // PEM, trusted besides the container's own
	Limits Limits       `json:"limits,omitzero"`
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
	// One of gemini, anthropic, openai-responses and openai-chat; the second part of every path.
	Name string `json:"name"`
	// Base address, with the version for OpenAI's; "" is the provider's own.
	Upstream string `json:"upstream,omitempty"`
	Key      Secret `json:"key,omitempty"` // "" where the upstream needs none
	// The header of the key and the text before the key, if the upstream does not take it in the
	// API's own header: Authorization and "Bearer ".
	KeyHeader string `json:"key_header,omitempty"`
	KeyScheme string `json:"key_scheme,omitempty"`
	// Further headers and query parameters of every request.
	Extra  map[string]Secret `json:"headers,omitempty"`
	Query  map[string]Secret `json:"query,omitempty"`
	Models []string          `json:"models"` // exact names

	// Prices of models; one without is metered, and asked for nothing under a budget in money.
	Prices map[string]*prices.Price `json:"prices,omitempty"`
}

// Limits bound what a role can make the gateway do.
type Limits struct {
	Body        int64 `json:"body,omitempty"`        // bytes of one request
	Bodies      int64 `json:"bodies,omitempty"`      // bytes of all requests held at once
	Answer      int64 `json:"answer,omitempty"`      // bytes of one answer
	Concurrent  int   `json:"concurrent,omitempty"`  // requests at once
	Connections int64 `json:"connections,omitempty"` // open at once
	HeadersMS   int64 `json:"headers_ms,omitempty"`  // until an upstream answers
	// Between two pieces of an answer, or of what a tunnel carries.
	IdleMS    int64 `json:"idle_ms,omitempty"`
	RequestMS int64 `json:"request_ms,omitempty"` // one request in all
	ReadMS    int64 `json:"read_ms,omitempty"`    // until a request's body is there
	WriteMS   int64 `json:"write_ms,omitempty"`   // until a client accepts a piece of an answer
	Tunnels   int   `json:"tunnels,omitempty"`    // open at once
}

const minute = int64(time.Minute / time.Millisecond)

// defaults are the limits of which a setup says nothing.
var defaults = Limits{
	Body: 20 << 20, Bodies: 48 << 20, Answer: 64 << 20, Concurrent: 64, Connections: 1024,
	HeadersMS: 5 * minute, IdleMS: 5 * minute, RequestMS: 20 * minute, ReadMS: minute, WriteMS: minute, Tunnels: 32,
}

// span is a limit in milliseconds as a duration.
func span(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// address is where the provider is. Errors show no value that may be a key or a password.
func (p Provider) address() (*url.URL, error) {
	api, known := apis[meter.API(p.Name)]
	switch {
	case !known:
		return nil, errors.New("its API is unknown")
	case !p.Key.fits():
		return nil, errors.New("its key has a line break, or a space at an end")
	case !only(p.KeyHeader, ""):
		return nil, errors.New("the header of its key is not the name of a header")
	}
	for name, value := range p.Extra {
		if name == "" || !only(name, "") || !value.fits() {
			return nil, fmt.Errorf("the header %q is not one, or its value has a line break, or a space at an end", name)
		}
	}
	base, _, err := ParseAddress(cmp.Or(p.Upstream, api.Base))
	return base, err
}

const (
	dialTime      = 20 * time.Second
	handshakeTime = 20 * time.Second

	// restTime is how long a connection to a provider is kept for the next request:
	// shorter than any server's own patience, for a request that meets a closing
	// connection is lost, since it cannot be sent twice.
	restTime = 15 * time.Second

	requestSize = 8 << 10  // bytes: lets a short prompt go out with its headers
	answerSize  = 16 << 10 // bytes that are read at once
)

// transport is the way to the providers. It speaks HTTP/1.1 alone, as one with roots of its
// own does, so that a stream that stalls or breaks holds up no other.
func (s Setup) transport() (*http.Transport, error) {
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool() // an empty image has none
	}
	if s.CA != "" && !roots.AppendCertsFromPEM([]byte(s.CA)) {
		return nil, errors.New("cannot use the setup's ca: there is no certificate in it")
	}
	proxy, err := s.Proxies.Of()
	if err != nil {
		return nil, err
	}
	return &http.Transport{
		Proxy:                  func(q *http.Request) (*url.URL, error) { return proxy(q.URL) },
		OnProxyConnectResponse: connected,
		DialContext:            (&net.Dialer{Timeout: dialTime}).DialContext,
		TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    handshakeTime,
		ResponseHeaderTimeout:  span(s.Limits.HeadersMS),
		MaxResponseHeaderBytes: maxHeader,
		MaxIdleConns:           s.Limits.Concurrent,
		MaxIdleConnsPerHost:    s.Limits.Concurrent,
		IdleConnTimeout:        restTime,
		DisableCompression:     true,
		ReadBufferSize:         answerSize,
		WriteBufferSize:        requestSize,
	}, nil
}

// Address returns the provider's own address for an API, "" for an unknown one.
func Address(name string) string { return apis[meter.API(name)].Base }

// ParseAddress reads the base address of an upstream, to which a path can be appended. One
// that is local is on this machine's loopback, by its host alone: no name is resolved. Errors
// show no part of it, since it may hold a password.
func ParseAddress(raw string) (base *url.URL, local bool, err error) {
	base, err = url.Parse(strings.TrimRight(raw, "/"))
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Hostname() == "" || base.User != nil || strings.ContainsAny(raw, "?#%") {
		return nil, false, errors.New("want a plain address such as https://proxy.example/v1: no user or password in it, nothing encoded, and nothing behind its path")
	}
	base.Host = strings.ToLower(base.Host)
	host := strings.TrimSuffix(base.Hostname(), ".")
	addr, _ := netip.ParseAddr(host) // or it is a name
	addr = addr.Unmap()
	local = addr.IsLoopback() || addr.IsUnspecified() || host == "localhost" || strings.HasSuffix(host, ".localhost")
	return base, local, nil
}

// MachineAddrs are this machine's own addresses, for the Inside of a setup: a machine may
// have a public one, behind which all its services listen.
func MachineAddrs() (all []netip.Addr, err error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("cannot find out this machine's addresses: %w", err)
	}
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			all = append(all, p.Addr().Unmap().WithZone(""))
		}
	}
	return all, nil
}
