package images

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"strings"

	"abl/internal/cacerts"
)

// certificates gives the authorities that downloads of a build trust beside
// the public ones, or nothing. Only certificates go on: a file may hold a key too.
func (m *Maker) certificates() ([]byte, error) {
	for _, from := range []struct {
		name, path string
		named      bool // by a person, for this
	}{
		{"--ca-cert", m.CACert, true}, {"ABL_CA_CERT", m.Env("ABL_CA_CERT"), true},
		{"NODE_EXTRA_CA_CERTS", m.Env("NODE_EXTRA_CA_CERTS"), false}, {"SSL_CERT_FILE", m.Env("SSL_CERT_FILE"), false},
	} {
		if from.path == "" {
			continue
		}
		certs, err := cacerts.Read(from.path)
		switch {
		case err == nil:
			m.say("downloads trust the certificates of %s (%s)", from.path, from.name)
			return certs, nil
		case from.named:
			return nil, fmt.Errorf("cannot use the certificates of %s: %w", from.name, err)
		}
		m.say("not trusting the certificates of %s: %v", from.name, err)
	}
	return nil, nil
}

// proxyArgs gives abl's proxies to a build, in both spellings: programs differ. An
// engine hands these arguments to every build step without keeping them in the image or
// its history.
func proxyArgs(env func(string) string) map[string]string {
	args := map[string]string{}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"} {
		if v := cmp.Or(env(name), env(strings.ToLower(name))); v != "" {
			args[name], args[strings.ToLower(name)] = v, v
		}
	}
	return args
}

// goProxy is the first module proxy of the user's settings, and the public one otherwise.
func goProxy(env func(string) string) string {
	for _, entry := range strings.FieldsFunc(env("GOPROXY"), func(r rune) bool { return r == ',' || r == '|' }) {
		if strings.HasPrefix(entry, "http") {
			return strings.TrimRight(entry, "/")
		}
	}
	return "https://proxy.golang.org"
}

// npmRegistry is the user's registry of npm packages, and the public one otherwise.
func npmRegistry(env func(string) string) string {
	named := cmp.Or(env("npm_config_registry"), env("NPM_CONFIG_REGISTRY"))
	return strings.TrimRight(cmp.Or(named, "https://registry.npmjs.org"), "/")
}

// proxyIsLocal tells a proxy that only this machine's own loopback reaches.
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
