package filter

import (
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"strings"
)

// maxTarget is the longest request target in bytes.
const maxTarget = 1024

// parameter is one name=value of a query.
type parameter struct{ name, value string }

// split takes a request target apart, or says what is odd about it. Nothing in it
// may be spelled in two ways, for then two programs could read it differently.
func split(target string) (path string, query []parameter, odd string) {
	path, rest, asked := strings.Cut(target, "?")
	switch {
	case len(target) > maxTarget:
		return "", nil, "the target is too long"
	case !strings.HasPrefix(path, "/"):
		return "", nil, "the target is not a path"
	case strings.Contains(path, "%"):
		return "", nil, "the path is percent-encoded"
	case strings.Contains(path, "//"):
		return "", nil, "the path has an empty part"
	case !only(path, "/:"):
		return "", nil, "the path has a character that no path here has"
	}
	for part := range strings.SplitSeq(path, "/") {
		if strings.Trim(part, ".") == "" && part != "" {
			return "", nil, "the path has a part of dots"
		}
	}
	if !asked {
		return path, nil, ""
	}
	for pair := range strings.SplitSeq(rest, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if name == "" || !only(name, "") || !only(value, "") {
			return "", nil, "the query has a character that no query here has"
		}
		query = append(query, parameter{name, value})
	}
	return path, query, ""
}

// only says whether s consists of letters, digits, "._-~" and what is in more.
func only(s, more string) bool {
	for _, b := range []byte(s) {
		letter := b|0x20 >= 'a' && b|0x20 <= 'z'
		if !letter && (b < '0' || b > '9') && strings.IndexByte("._-~"+more, b) < 0 {
			return false
		}
	}
	return true
}

// credentials are all tokens that a request brings, in any provider's way.
func credentials(h http.Header, query []parameter) []string {
	all := append([]string(nil), h.Values("X-Goog-Api-Key")...)
	all = append(all, h.Values("X-Api-Key")...)
	for _, v := range h.Values("Authorization") {
		if token, ok := after(v, "bearer "); ok {
			all = append(all, token)
		}
	}
	for _, p := range query {
		if p.name == "key" {
			all = append(all, p.value)
		}
	}
	return all
}

// proxyCredentials are those of a CONNECT: tools know a proxy's user and password.
func proxyCredentials(h http.Header) []string {
	var all []string
	for _, v := range h.Values("Proxy-Authorization") {
		if token, ok := after(v, "bearer "); ok {
			all = append(all, token)
		}
		if basic, ok := after(v, "basic "); ok {
			plain, err := base64.StdEncoding.DecodeString(basic)
			if _, password, found := strings.Cut(string(plain), ":"); err == nil && found {
				all = append(all, password)
			}
		}
	}
	return all
}

// proxied says whether a target is what tools send a proxy for plain http, and
// for which host and port.
func proxied(target string) (host string, is bool) {
	rest, is := after(target, "http://")
	if !is {
		return "", false
	}
	host, _, _ = strings.Cut(rest, "/")
	if host, _, _ = strings.Cut(host, "?"); !strings.Contains(host, ":") {
		host += ":80"
	}
	if len(host) > maxTarget || !only(host, ":[]") {
		return "", true
	}
	return strings.ToLower(host), true
}

// after cuts a prefix off, in whatever case it is written.
func after(s, prefix string) (string, bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return "", false
	}
	return s[len(prefix):], true
}

// knows says whether there is a token and every one is the call's. A request with
// two different ones is none that a client sends.
func (r *Rules) knows(tokens []string) bool {
	same := 1
	for _, t := range tokens {
		hash := Hash(t)
		same &= subtle.ConstantTimeCompare(hash[:], r.Token[:])
	}
	return same == 1 && len(tokens) > 0
}

// Plain says whether s can be one part of a path here: letters, digits, "._-~",
// and not of dots alone.
func Plain(s string) bool { return strings.Trim(s, ".") != "" && only(s, "") }
