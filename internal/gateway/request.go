package gateway

import (
	"cmp"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"abl/internal/gateway/meter"
	"abl/internal/redact"
	"abl/internal/wording"
)

const (
	maxTarget = 1024      // bytes of the target of a request
	inPath    = "{model}" // in a route
)

// provider is a provider of the setup with the description of its API.
type provider struct {
	Provider
	api
	keys []string // all that were used
	base *url.URL
	key  *atomic.Pointer[activeKey]
}

// activeKey is the current key, with a redactor for this key and all earlier ones.
type activeKey struct {
	key    Secret
	secret *redact.Redactor
}

// newProvider returns a provider of the setup. It fails if an address or a header is invalid.
func newProvider(one Provider) (*provider, error) {
	base, err := one.address()
	if err != nil {
		return nil, fmt.Errorf("cannot use provider %q: %v", one.Name, err)
	}
	p := &provider{Provider: one, api: apis[meter.API(one.Name)], base: base, key: new(atomic.Pointer[activeKey])}
	if one.KeyHeader != "" {
		p.Auth, p.Scheme = one.KeyHeader, one.KeyScheme
	}
	p.setKey(one.Key)
	return p, nil
}

// setKey replaces the key. The redactor keeps the earlier keys, because responses to requests with
// them may still arrive.
func (p *provider) setKey(key Secret) {
	p.keys = append(p.keys, string(key))
	secrets := slices.Clone(p.keys)
	for _, value := range p.Extra {
		secrets = append(secrets, string(value))
	}
	p.key.Store(&activeKey{key, redact.New(secrets...)})
}

// secret returns the redactor of the provider's keys.
func (p *provider) secret() *redact.Redactor { return p.key.Load().secret }

// secrets returns the texts of the provider that no line of the log may contain.
func (p *provider) secrets() []string {
	all := slices.Clone(p.keys)
	for _, values := range []map[string]Secret{p.Extra, p.Provider.Query} {
		for _, value := range values {
			all = append(all, string(value))
		}
	}
	return all
}

// verdict says whether a request is allowed. The authors of requests are hostile, so the gateway
// refuses every request that is not exactly in the form that an agent's client sends.
type verdict struct {
	Request            // the line in the log
	reason   string    // why it is refused, or what went wrong
	provider *provider // nil if the path names none
	route    *route    // set if the request is to be forwarded
	path     string    // below the upstream's base
	query    string
	local    bool  // a request for the list of models, which the gateway serves
	answers  int64 // the number of requested responses
	refers   bool  // the body names content that only the provider reads
}

func (v *verdict) deny(status int, reason string) {
	v.Refused, v.Status, v.reason = true, status, reason
}

// decide returns the verdict on a request without its body.
func (s *server) decide(q *http.Request) *verdict {
	v := &verdict{Request: Request{Method: q.Method}}
	switch plain, err := url.Parse(q.RequestURI); {
	case q.Method == http.MethodConnect:
		s.decideTunnel(q, v)
	case err == nil && plain.Scheme == "http" && s.authorized(tokensIn(q.Header["Proxy-Authorization"])):
		v.Class = "http"
		host := strings.ToLower(net.JoinHostPort(plain.Hostname(), cmp.Or(plain.Port(), "80")))
		if len(host) <= maxTarget && only(host, ":[]") {
			v.Host = host
		}
		v.deny(http.StatusForbidden, "plain http; only https is allowed")
	default:
		s.decideRequest(q, v)
	}
	return v
}

// decideRequest decides on all requests except CONNECT. It allows a plain HTTP/1.1 request with a
// length. It finds the provider first, because the provider determines the form of a refusal.
func (s *server) decideRequest(q *http.Request, v *verdict) {
	path, query, _ := strings.Cut(q.RequestURI, "?")
	call, below, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	name, rest, _ := strings.Cut(below, "/")
	if p := s.providers[name]; p != nil && call == s.Call.ID {
		v.provider, v.Provider = p, name
	}
	tokens := slices.Concat(q.Header["X-Goog-Api-Key"], q.Header["X-Api-Key"], tokensIn(q.Header["Authorization"]))
	var pass, odd []string
	for pair := range strings.SplitSeq(query, "&") {
		switch name, value, _ := strings.Cut(pair, "="); {
		case name == "key":
			tokens = append(tokens, value)
		case v.provider != nil && slices.Contains(v.provider.Queries, name) && only(value, ""):
			pass = append(pass, pair)
		case pair != "":
			odd = append(odd, name)
		}
	}
	switch {
	case !s.authorized(tokens):
		v.deny(http.StatusUnauthorized, wrongToken)
	case v.provider == nil:
		v.deny(http.StatusNotFound, "the path does not begin with this call and one of its providers")
	case q.Proto != "HTTP/1.1" || q.Header.Get("Upgrade") != "" || q.Header.Get("Content-Encoding") != "":
		v.deny(http.StatusBadRequest, "only plain HTTP/1.1 without an encoded body is allowed")
	case len(q.TransferEncoding) > 0:
		// net/http drops the Content-Length of such a request. Agents' clients always send a length.
		v.deny(http.StatusLengthRequired, "the body is chunked and has no length")
	default:
		v.query = strings.Join(pass, "&")
		v.find("/" + rest)
	}
	switch {
	case v.Refused:
	case q.ContentLength > s.Limits.Body:
		reason := "its body has %d bytes, and the gateway allows at most %d, whatever the model allows"
		v.deny(http.StatusRequestEntityTooLarge, fmt.Sprintf(reason, q.ContentLength, s.Limits.Body))
	case len(odd) > 0:
		v.deny(http.StatusBadRequest, fmt.Sprintf("the parameter %q is not allowed (docs/gateway.md)", clip(odd[0])))
	}
}

// find looks up the route of a request. A route matches the whole path, so that there is only one
// spelling of it.
func (v *verdict) find(path string) {
	p := v.provider
	if v.Method == http.MethodGet && path == p.List {
		v.Class, v.local, v.Free = "models", true, true
		return
	}
	for i := range p.Routes {
		if model, ok := match(p.Routes[i].Path, path); ok && v.Method == http.MethodPost {
			v.Class, v.Model, v.route, v.path = p.Routes[i].Class, model, &p.Routes[i], strings.TrimPrefix(path, p.Strip)
		}
	}
	switch {
	case v.route == nil:
		v.deny(http.StatusNotFound, p.otherPath(v.Method, path))
	case v.Model != "" && !slices.Contains(p.Models, v.Model):
		v.deny(http.StatusForbidden, p.otherModel(v.Model))
	}
}

// otherPath returns why a request that is not in the API is refused, with the allowed paths. If the
// path belongs to another API, it names that API.
func (p *provider) otherPath(method, path string) string {
	reason := fmt.Sprintf("%s %q is not allowed", clip(method), clip(path))
	has := func(r route) bool { _, is := match(r.Path, path); return is }
	for _, kind := range slices.Sorted(maps.Keys(apis)) {
		if kind != p.Kind && slices.ContainsFunc(apis[kind].Routes, has) {
			reason += fmt.Sprintf(": it belongs to the API %s", kind)
		}
	}
	var allowed []string
	for _, r := range p.Routes {
		allowed = append(allowed, r.Path)
	}
	return fmt.Sprintf("%s; this call may use POST %s of the API %s", reason, strings.Join(allowed, ", "), p.Kind)
}

// match compares a path with the path of a route, in which "{model}" stands for one part.
func match(pattern, path string) (model string, ok bool) {
	before, behind, has := strings.Cut(pattern, inPath)
	if !has {
		return "", pattern == path
	}
	model, begins := strings.CutPrefix(path, before)
	model, ends := strings.CutSuffix(model, behind)
	return model, begins && ends && model != "" && !strings.ContainsAny(model, "/:")
}

// NotAllowed is the end of the reason why a host is refused that the settings do not allow.
const NotAllowed = " is not in network.allow"

const wrongToken = "the token does not belong to this call"

// decideTunnel decides on CONNECT. It allows the exact names and ports of the setup.
func (s *server) decideTunnel(q *http.Request, v *verdict) {
	v.Class = "connect"
	target := strings.ToLower(q.RequestURI)
	switch {
	case !s.authorized(tokensIn(q.Header["Proxy-Authorization"])):
		v.deny(http.StatusProxyAuthRequired, wrongToken)
	case len(target) > maxTarget || !strings.Contains(target, ":") || !only(target, ":[]"):
		v.deny(http.StatusBadRequest, "the target is not a host and a port")
	default:
		v.Host = target
		if !slices.ContainsFunc(s.Connect, func(one string) bool { return strings.EqualFold(one, target) }) {
			v.deny(http.StatusForbidden, clip(target)+NotAllowed)
		}
	}
}

// clip shortens a text from outside for a reason.
func clip(s string) string { return wording.Cut(s, 100) }

// only reports whether s consists of letters, digits, "._-~" and the characters in more.
func only(s, more string) bool {
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-~"+more) == ""
}

// tokensIn returns the tokens in the values of a header for credentials. Tools send the token as the
// password of a proxy.
func tokensIn(values []string) (all []string) {
	for _, v := range values {
		scheme, token, _ := strings.Cut(v, " ")
		switch strings.ToLower(scheme) {
		case "bearer":
			all = append(all, token)
		case "basic":
			plain, _ := base64.StdEncoding.DecodeString(token)
			if _, password, found := strings.Cut(string(plain), ":"); found {
				all = append(all, password)
			}
		}
	}
	return all
}

// authorized reports whether there is a token, and all tokens are the call's. No client sends two
// different ones.
func (s *server) authorized(tokens []string) bool {
	same := 1
	for _, t := range tokens {
		same &= subtle.ConstantTimeCompare([]byte(t), []byte(s.Call.Token))
	}
	return same == 1 && len(tokens) > 0
}
