// Package gateway is the only route out of a role's network. It has the keys of the providers, allows
// only the requests that an agent needs, counts tokens and enforces budgets. It runs in a separate
// container. It reads its setup and commands from standard input and writes its log to standard
// output, as lines of JSON. Package sidecar runs it and reads its log.
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
	"abl/internal/usage"
)

// Secret is a text that fmt does not print.
type Secret string

// String hides the secret.
func (Secret) String() string { return "[secret]" }

// GoString hides the secret from %#v.
func (Secret) GoString() string { return "[secret]" }

// fits reports whether a header can contain the secret unchanged. Otherwise a provider would get, and
// could repeat, a text that the gateway does not redact.
func (s Secret) fits() bool {
	return !strings.ContainsAny(string(s), "\r\n\x00") && strings.TrimSpace(string(s)) == string(s)
}

// Setup is the first line on standard input.
type Setup struct {
	// "host:port". Port 0 is a free port, which the ready line names.
	Listen    string     `json:"listen"`
	Call      Call       `json:"call"`
	Providers []Provider `json:"providers"`
	Connect   []string   `json:"connect,omitempty"` // "host:port" of registries, exact
	Private   []string   `json:"private,omitempty"` // entries of Connect that may have private addresses
	Proxies   Proxies    `json:"proxies,omitzero"`
	// No request of the run had a response yet. After a few requests that reached no provider, the
	// gateway refuses all others, so that the agent ends.
	First bool `json:"first,omitempty"`
	// Addresses of the engine's machine. No tunnel is allowed to them, even if they are public.
	Inside []netip.Addr `json:"inside,omitempty"`
	CA     string       `json:"ca,omitempty"` // PEM, trusted in addition to the container's own
	Limits Limits       `json:"limits,omitzero"`
}

// Call is the call of a role that may use the gateway.
type Call struct {
	ID       string `json:"id"`    // the first part of every path
	Token    Secret `json:"token"` // the role uses it as its key
	Deadline int64  `json:"deadline"`
	Budget   Budget `json:"budget,omitzero"`
}

// Budget is the limit of the call from its beginning. Nil is no limit; 0 allows nothing.
type Budget struct {
	Requests *int64  `json:"requests,omitempty"`
	Bounds   []Bound `json:"bounds,omitempty"` // all of them hold
}

// Bound is a limit of this call, or of its phase or project.
type Bound struct {
	Of         string     `json:"of"` // what it limits: call, phase or project
	Tokens     *int64     `json:"tokens,omitempty"`
	USD        *usage.USD `json:"usd,omitempty"`
	UsedTokens int64      `json:"used_tokens,omitempty"` // before this call
	UsedUSD    usage.USD  `json:"used_usd,omitempty"`
}

// Provider is an upstream and the requests that it may get.
type Provider struct {
	// One of gemini, anthropic, openai-responses and openai-chat; the second part of every path.
	Name string `json:"name"`
	// Base address, for OpenAI with the version; "" is the provider's own.
	Upstream string `json:"upstream,omitempty"`
	Key      Secret `json:"key,omitempty"` // "" if the upstream needs none
	// The header of the key and the text before the key, if the upstream does not take it in the
	// API's own header: Authorization and "Bearer ".
	KeyHeader string `json:"key_header,omitempty"`
	KeyScheme string `json:"key_scheme,omitempty"`
	// Further headers and query parameters of every request.
	Extra  map[string]Secret `json:"headers,omitempty"`
	Query  map[string]Secret `json:"query,omitempty"`
	Models []string          `json:"models"` // exact names

	// Prices of models. A model without a price is metered, and refused under a budget in dollars.
	Prices map[string]*usage.Price `json:"prices,omitempty"`
}

// Limits bound the resources that a role can use in the gateway.
type Limits struct {
	Body        int64 `json:"body,omitempty"`        // bytes of one request
	Bodies      int64 `json:"bodies,omitempty"`      // bytes of all bodies in memory
	Answer      int64 `json:"answer,omitempty"`      // bytes of one response
	Concurrent  int   `json:"concurrent,omitempty"`  // requests at once
	Connections int64 `json:"connections,omitempty"` // open at once
	HeadersMS   int64 `json:"headers_ms,omitempty"`  // until an upstream responds
	// Between two pieces of a response or a tunnel.
	IdleMS    int64 `json:"idle_ms,omitempty"`
	RequestMS int64 `json:"request_ms,omitempty"` // a whole request
	ReadMS    int64 `json:"read_ms,omitempty"`    // until the body of a request is complete
	WriteMS   int64 `json:"write_ms,omitempty"`   // until a client accepts a piece of a response
	Tunnels   int   `json:"tunnels,omitempty"`    // open at once
}

const minute = int64(time.Minute / time.Millisecond)

// defaults are the limits that a setup does not set.
var defaults = Limits{
	Body:        20 << 20,
	Bodies:      48 << 20,
	Answer:      64 << 20,
	Concurrent:  64,
	Connections: 1024,
	HeadersMS:   5 * minute,
	IdleMS:      5 * minute,
	RequestMS:   20 * minute,
	ReadMS:      minute,
	WriteMS:     minute,
	Tunnels:     32,
}

// span returns a limit in milliseconds as a duration.
func span(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// address returns the address of the provider. It fails if a header or the address is invalid. Errors
// quote no value that may be a key or a password.
func (p Provider) address() (*url.URL, error) {
	api, known := apis[meter.API(p.Name)]
	switch {
	case !known:
		return nil, errors.New("its API is unknown")
	case !p.Key.fits():
		return nil, errors.New("its key has a line break, or a leading or trailing space")
	case !only(p.KeyHeader, ""):
		return nil, errors.New("the name of its key's header is invalid")
	}
	for name, value := range p.Extra {
		if name == "" || !only(name, "") || !value.fits() {
			return nil, fmt.Errorf("the name of the header %q is invalid, or its value has a line break, "+
				"or a leading or trailing space", name)
		}
	}
	base, _, err := ParseAddress(cmp.Or(p.Upstream, api.Base))
	return base, err
}

const (
	dialTime      = 20 * time.Second
	handshakeTime = 20 * time.Second

	// restTime is the idle time after which a connection to a provider is closed. It is shorter
	// than the timeout of common servers: a request on a connection that the server closes is lost,
	// since it must not be sent twice.
	restTime = 15 * time.Second

	requestSize = 8 << 10  // bytes: a short prompt is sent with its headers
	answerSize  = 16 << 10 // bytes that are read at once
)

// transport returns the transport to the providers. It only uses HTTP/1.1, because it has a TLS
// configuration of the setup, so that a stream that stalls does not delay the others.
func (s Setup) transport(proxy func(*url.URL) (*url.URL, error)) (*http.Transport, error) {
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool() // an empty image has none
	}
	if s.CA != "" && !roots.AppendCertsFromPEM([]byte(s.CA)) {
		return nil, errors.New("cannot use the setup's ca: it contains no certificate")
	}
	return &http.Transport{
		Proxy:                  func(q *http.Request) (*url.URL, error) { return proxy(q.URL) },
		OnProxyConnectResponse: refusal,
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

// Address returns the provider's own address of an API, "" for an unknown API.
func Address(name string) string { return apis[meter.API(name)].Base }

// ParseAddress reads the base address of an upstream, to which a path can be appended. local reports
// whether its host is the loopback of this machine, without resolving names. Errors do not quote the
// address, because it may contain a password.
func ParseAddress(raw string) (base *url.URL, local bool, err error) {
	base, err = url.Parse(strings.TrimRight(raw, "/"))
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Hostname() == "" || base.User != nil || strings.ContainsAny(raw, "?#%") {
		return nil, false, errors.New("want a plain address such as https://proxy.example/v1, without user, password, " +
			"encoded characters, query and fragment")
	}
	base.Host = strings.ToLower(base.Host)
	host := strings.TrimSuffix(base.Hostname(), ".")
	addr, _ := netip.ParseAddr(host) // the zero Addr for a name
	addr = addr.Unmap()
	local = addr.IsLoopback() || addr.IsUnspecified() || host == "localhost" || strings.HasSuffix(host, ".localhost")
	return base, local, nil
}
