package environment

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"abl/images"
	"abl/internal/config"
	"abl/internal/gateway"
)

// Proxy is the proxy through which requests leave this machine.
type Proxy struct {
	gateway.Proxies
	From string // the setting that names the proxy: network.proxy or HTTPS_PROXY, "" without a proxy
}

// The variables that name proxies. Programs use them in upper or in lower case.
const (
	httpsVar = "HTTPS_PROXY"
	httpVar  = "HTTP_PROXY"
	noVar    = "NO_PROXY"
)

// ProxyOf returns the proxy of network.proxy, or else that of the environment variables.
func ProxyOf(conf *config.Loaded, env func(string) string) (p Proxy, err error) {
	either := func(name string) string { return cmp.Or(env(name), env(strings.ToLower(name))) }
	p.No = either(noVar)
	switch named := conf.Network.Proxy; named {
	case config.NoProxy:
		return Proxy{}, nil
	case "":
		p.HTTPS, p.HTTP = gateway.Secret(either(httpsVar)), gateway.Secret(either(httpVar))
		if p.HTTPS != "" {
			p.From = httpsVar
		} else if p.HTTP != "" {
			p.From = httpVar
		}
	default:
		p.HTTPS, p.HTTP, p.From = gateway.Secret(named), gateway.Secret(named), "network.proxy"
	}
	for name, raw := range map[string]gateway.Secret{httpsVar: p.HTTPS, httpVar: p.HTTP} {
		if _, err := gateway.ParseProxy(string(raw)); raw != "" && err != nil {
			do := "correct it, or set network.proxy to the proxy's address or to none"
			return Proxy{}, &Error{Usage, do, fmt.Errorf("cannot use %s: %w", name, err)}
		}
	}
	return p, nil
}

// Shown returns the https proxy without its login, "" without a proxy.
func (p Proxy) Shown() string {
	u, err := gateway.ParseProxy(string(p.HTTPS))
	if err != nil {
		return ""
	}
	login := ""
	if u.User != nil {
		login, u.User = ", with a login", nil
	}
	return fmt.Sprintf("%s (%s%s)", u, p.From, login)
}

// vars returns env with this proxy instead of that of the environment.
func (p Proxy) vars(env func(string) string) func(string) string {
	return func(name string) string {
		switch strings.ToUpper(name) {
		case httpsVar:
			return string(p.HTTPS)
		case httpVar:
			return string(p.HTTP)
		case noVar:
			return p.No
		}
		return env(name)
	}
}

// Transport returns the transport for abl's own requests to models: through the proxy, and with the
// authorities that this machine and the project trust.
func Transport(conf *config.Loaded, root, caCert string) (http.RoundTripper, error) {
	p, err := ProxyOf(conf, os.Getenv)
	if err != nil {
		return nil, err
	}
	proxy, err := p.Of()
	if err != nil {
		return nil, err
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.Proxy = func(q *http.Request) (*url.URL, error) { return proxy(q.URL) }
	trusted := images.CACerts{Env: os.Getenv, Extra: cmp.Or(caCert, Path(root, conf.Network.CACert))}
	if !trusted.Own() {
		return t, nil
	}
	roots, err := trusted.Pool()
	if err != nil {
		err = fmt.Errorf("cannot verify certificates: %w", err)
		return nil, &Error{Unavailable, "install ca-certificates, or set network.ca_cert to a file", err}
	}
	t.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	return t, nil
}

// proxies returns the proxies of the gateway. The gateway reaches abl's forwarders without a proxy.
// If a proxy is on this machine's loopback, abl forwards to it.
func (e *Environment) proxies(ctx context.Context) (gateway.Proxies, error) {
	p, err := ProxyOf(e.Conf, os.Getenv)
	if err != nil || p.From == "" {
		return gateway.Proxies{}, err
	}
	for _, one := range e.forwards {
		p.No = strings.TrimPrefix(p.No+","+one.At.Addr.Addr().String(), ",")
	}
	for name, raw := range map[string]*gateway.Secret{httpsVar: &p.HTTPS, httpVar: &p.HTTP} {
		at, err := gateway.ParseProxy(string(*raw))
		if err != nil || !isLoopback(at.Hostname()) {
			continue
		}
		if name == httpVar { // abl forwards only tunnels to a proxy
			*raw = ""
			continue
		}
		if !e.Info.Near {
			return gateway.Proxies{}, &Error{Usage, "give an address that the engine's machine reaches",
				fmt.Errorf("cannot use the proxy of %s: it is on this machine's loopback, and the engine runs elsewhere", p.From)}
		}
		one, err := e.forwarder(ctx, "the proxy of "+p.From, at, forwardProxy)
		if err != nil {
			return gateway.Proxies{}, err
		}
		*raw = gateway.Secret(one.ProxyURL())
	}
	return p.Proxies, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && (ip.IsLoopback() || ip.IsUnspecified())
}
