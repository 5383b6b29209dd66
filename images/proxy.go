package images

import (
	"net"
	"net/url"
	"strings"
)

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
