package images

import (
	"fmt"
	"net"
	"net/url"
	"strings"

	"abl/internal/cacerts"
)

// certificates gives the authorities that downloads of a build trust beside
// the public ones, or nothing. Only certificates go on: a file may hold a key too.
func (m *Maker) certificates() ([]byte, error) {
	path, from := m.CACert, "--ca-cert"
	if path == "" {
		path, from = m.env("ABL_CA_CERT"), "ABL_CA_CERT"
	}
	if path != "" {
		certs, err := cacerts.Read(path)
		if err != nil {
			return nil, fmt.Errorf("cannot use the certificates of %s: %w", from, err)
		}
		return certs, nil
	}
	for _, from := range []string{"NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"} {
		path := m.env(from)
		if path == "" {
			continue
		}
		certs, err := cacerts.Read(path)
		if err != nil {
			m.say("not trusting the certificates of %s: %v", from, err)
			continue
		}
		m.say("downloads trust the certificates of %s (%s)", path, from)
		return certs, nil
	}
	return nil, nil
}

// proxyNames are the build arguments that an engine hands to every build step
// without keeping them in the image or its history.
var proxyNames = []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"}

// proxyArgs gives abl's proxies to a build, in both spellings: programs differ.
func proxyArgs(env func(string) string) map[string]string {
	args := map[string]string{}
	for _, name := range proxyNames {
		if v := eitherCase(env, name); v != "" {
			args[name], args[strings.ToLower(name)] = v, v
		}
	}
	return args
}

func eitherCase(env func(string) string, name string) string {
	if v := env(name); v != "" {
		return v
	}
	return env(strings.ToLower(name))
}

// proxyIsLocal tells a proxy that only this machine's own loopback reaches.
func proxyIsLocal(env func(string) string) bool {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY"} {
		raw := eitherCase(env, name)
		if raw != "" && !strings.Contains(raw, "://") {
			raw = "http://" + raw
		}
		u, err := url.Parse(raw)
		if err != nil || raw == "" {
			continue
		}
		ip := net.ParseIP(u.Hostname())
		if u.Hostname() == "localhost" || ip != nil && ip.IsLoopback() {
			return true
		}
	}
	return false
}
