package images

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"strings"
)

// certificates returns the CA certificates that downloads trust in addition to the public ones, or
// nil. It reads only certificates: the file may also contain a key.
func (m *Maker) certificates() ([]byte, error) {
	for _, from := range []struct {
		name, path string
		named      bool // the user named the file for builds
	}{
		{"--ca-cert", m.CACert, true}, {"ABL_CA_CERT", m.Env("ABL_CA_CERT"), true},
		{"NODE_EXTRA_CA_CERTS", m.Env("NODE_EXTRA_CA_CERTS"), false}, {"SSL_CERT_FILE", m.Env("SSL_CERT_FILE"), false},
	} {
		if from.path == "" {
			continue
		}
		certs, err := readCerts(from.path)
		switch {
		case err == nil:
			m.say("downloads trust the certificates of %s (%s)", from.path, from.name)
			return certs, nil
		case from.named:
			return nil, fmt.Errorf("cannot use the certificates of %s: %w", from.name, err)
		}
		m.say("ignored the certificates of %s: %v", from.name, err)
	}
	return nil, nil
}

// proxyArgs returns abl's proxies as build arguments, in upper and lower case because programs
// differ. Engines pass these arguments to each step and store them neither in the image nor in its
// history.
func proxyArgs(env func(string) string) map[string]string {
	args := map[string]string{}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"} {
		if v := cmp.Or(env(name), env(strings.ToLower(name))); v != "" {
			args[name], args[strings.ToLower(name)] = v, v
		}
	}
	return args
}

// goProxy returns the first module proxy in GOPROXY, or the public one.
func goProxy(env func(string) string) string {
	for _, entry := range strings.FieldsFunc(env("GOPROXY"), func(r rune) bool { return r == ',' || r == '|' }) {
		if strings.HasPrefix(entry, "http") {
			return strings.TrimRight(entry, "/")
		}
	}
	return "https://proxy.golang.org"
}

// npmRegistry returns the user's npm registry, or the public one.
func npmRegistry(env func(string) string) string {
	named := cmp.Or(env("npm_config_registry"), env("NPM_CONFIG_REGISTRY"))
	return strings.TrimRight(cmp.Or(named, "https://registry.npmjs.org"), "/")
}

// proxyIsLocal reports whether a proxy is on this machine's loopback.
func proxyIsLocal(env func(string) string) bool {
	args := proxyArgs(env)
	for _, proxy := range []string{args["HTTP_PROXY"], args["HTTPS_PROXY"]} {
		if !strings.Contains(proxy, "://") {
			proxy = "http://" + proxy
		}
		u, err := url.Parse(proxy)
		if err != nil {
			continue
		}
		if ip := net.ParseIP(u.Hostname()); u.Hostname() == "localhost" || ip != nil && ip.IsLoopback() {
			return true
		}
	}
	return false
}
