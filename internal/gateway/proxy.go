package gateway

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"abl/internal/wording"

	"golang.org/x/net/http/httpproxy"
)

// Proxies are the HTTP proxies to providers and registries. An address may contain a user and a
// password.
type Proxies struct {
	HTTP  Secret `json:"http,omitempty"`  // for addresses that begin with http://
	HTTPS Secret `json:"https,omitempty"` // for all others
	No    string `json:"no,omitempty"`    // hosts without a proxy, in the form of NO_PROXY
}

// ParseProxy reads the address of a proxy. Errors do not quote it, because it may contain a password.
func ParseProxy(raw string) (*url.URL, error) {
	if !strings.Contains(raw, "://") {
		raw = "http://" + raw
	}
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		return nil, errors.New("want the address of an HTTP proxy, such as http://proxy.example:3128")
	}
	if u.Port() == "" {
		u.Host = net.JoinHostPort(u.Hostname(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	}
	return u, nil
}

// Of returns a function that returns the proxy for an address, nil for none.
func (p Proxies) Of() (func(*url.URL) (*url.URL, error), error) {
	for _, raw := range []Secret{p.HTTP, p.HTTPS} {
		if _, err := ParseProxy(string(raw)); raw != "" && err != nil {
			return nil, fmt.Errorf("cannot use the setup's proxy: %w", err)
		}
	}
	c := httpproxy.Config{HTTPProxy: string(p.HTTP), HTTPSProxy: string(p.HTTPS), NoProxy: p.No}
	return c.ProxyFunc(), nil
}

// secrets returns the secret parts of the addresses.
func (p Proxies) secrets() (all []string) {
	for _, raw := range []Secret{p.HTTP, p.HTTPS} {
		u, err := ParseProxy(string(raw))
		if err != nil || u.User == nil {
			continue
		}
		password, _ := u.User.Password()
		all = append(all, cmp.Or(password, u.User.Username()), basic(u.User))
	}
	return all
}

// basic returns a user and a password in the form of a header.
func basic(u *url.Userinfo) string {
	password, _ := u.Password()
	return base64.StdEncoding.EncodeToString([]byte(u.Username() + ":" + password))
}

// proxyError means that a proxy refused a connection, so that the request did not reach the server.
type proxyError struct{ error }

func (e proxyError) Unwrap() error { return e.error }

// reasonHeader contains the error between abl, on the machine of the engine, and the proxy.
const reasonHeader = "Abl-Reason"

// refusal returns the error in a proxy's response to CONNECT, nil for none.
func refusal(_ context.Context, proxy *url.URL, _ *http.Request, r *http.Response) error {
	why := wording.Cut(r.Header.Get(reasonHeader), maxReason)
	switch {
	case r.StatusCode == http.StatusOK:
		return nil
	case why != "":
	case r.StatusCode == http.StatusProxyAuthRequired:
		const format = "the proxy %s requires a user and a password: put them into HTTPS_PROXY (http://USER:PASSWORD@%[1]s)"
		why = fmt.Sprintf(format, proxy.Host)
	default:
		why = fmt.Sprintf("the proxy %s refuses the connection: %s", proxy.Host, r.Status)
	}
	return proxyError{errors.New(why)}
}

// maxReason bounds a reason, in characters.
const maxReason = 300

// through connects to "host:port" through a proxy.
func (d Dialer) through(ctx context.Context, proxy *url.URL, target string) (net.Conn, error) {
	proxy, err := ParseProxy(proxy.String())
	if err != nil {
		return nil, err
	}
	failed := func(err error) error { return proxyError{fmt.Errorf("cannot reach the proxy %s: %w", proxy.Host, err)} }
	conn, err := (&net.Dialer{Timeout: dialTime}).DialContext(ctx, "tcp", proxy.Host)
	if err != nil {
		return nil, failed(err)
	}
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if proxy.Scheme == "https" {
		safe := tls.Client(conn, &tls.Config{RootCAs: d.Roots, ServerName: proxy.Hostname(), MinVersion: tls.VersionTLS12})
		if err := safe.HandshakeContext(ctx); err != nil {
			conn.Close()
			return nil, failed(err)
		}
		conn = safe
	}
	ask := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: target}, Host: target, Header: http.Header{}}
	if proxy.User != nil {
		ask.Header.Set("Proxy-Authorization", "Basic "+basic(proxy.User))
	}
	in := bufio.NewReader(conn)
	var answer *http.Response
	if err = ask.Write(conn); err == nil {
		answer, err = http.ReadResponse(in, ask) //nolint:bodyclose // a tunnel follows
	}
	if err != nil {
		err = failed(err)
	} else {
		err = refusal(ctx, proxy, ask, answer)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return &early{conn, in}, nil
}

// Relay handles CONNECT with a tunnel to "host:port" through a proxy.
func Relay(ctx context.Context, w http.ResponseWriter, d Dialer, proxy *url.URL, target string) {
	far, err := d.through(ctx, proxy, target)
	if err != nil {
		w.Header().Set(reasonHeader, wording.OneLine(err.Error()))
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	_, _, _ = accept(ctx, w, far, relayIdle)
}

// relayIdle is the longest silence of a tunnel through abl. The gateway allows less.
const relayIdle = 30 * time.Minute

// early is a connection with bytes that were read ahead.
type early struct {
	net.Conn
	in *bufio.Reader
}

func (c *early) Read(p []byte) (int, error) { return c.in.Read(p) }

// CloseWrite ends the bytes of this side.
func (c *early) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
