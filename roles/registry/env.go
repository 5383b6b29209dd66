package registry

import (
	"slices"
	"strings"
)

// near are the names that tools reach without a proxy, whoever they mean by them.
var near = []string{"localhost", ".localhost", "127.0.0.1", "::1", "[::1]", "0.0.0.0"}

// Env is the environment in which a role's tools find the gateway as their proxy,
// which is "http://abl:TOKEN@host:port"; inside are the names that are reached
// without one. Plain http goes to the gateway, too, which refuses it at once and
// with a reason, rather than to a name that nobody resolves.
func Env(proxy string, inside ...string) []string {
	no := strings.Join(slices.Concat(near, inside), ",")
	return []string{
		"HTTPS_PROXY=" + proxy, "https_proxy=" + proxy, "HTTP_PROXY=" + proxy, "http_proxy=" + proxy,
		"NO_PROXY=" + no, "no_proxy=" + no,
		// What tools look up for their own sake.
		"npm_config_update_notifier=false", "PIP_DISABLE_PIP_VERSION_CHECK=1",
	}
}

// CertEnv makes a role's tools trust the authorities in a file instead of those
// that their image comes with.
func CertEnv(file string) []string {
	var env []string
	for _, name := range []string{
		"SSL_CERT_FILE",       // Go, OpenSSL, Ruby, uv
		"NODE_EXTRA_CA_CERTS", // Node, npm
		"PIP_CERT", "REQUESTS_CA_BUNDLE",
		"CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "CARGO_HTTP_CAINFO",
	} {
		env = append(env, name+"="+file)
	}
	return env
}
