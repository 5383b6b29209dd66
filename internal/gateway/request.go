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
	maxTarget = 1024      // bytes of a request's
	inPath    = "{model}" // in a route
)

// provider is one of the setup's with what its API looks like.
type provider struct {
	Provider
	api
	keys []string // all that were in use
	base *url.URL
	held *atomic.Pointer[held]
}

// held is the key that is in use, and what keeps it and the keys before it out of sight.
type held struct {
	key    Secret
	secret *redact.Redactor
}

// newProvider reads what a setup says of a provider.
func newProvider(one Provider) (*provider, error) {
	base, err := one.address()
	if err != nil {
		return nil, fmt.Errorf("cannot use provider %q: %v", one.Name, err)
	}
	p := &provider{Provider: one, api: apis[meter.API(one.Name)], base: base, held: new(atomic.Pointer[held])}
	if one.KeyHeader != "" {
		p.Auth, p.Scheme = one.KeyHeader, one.KeyScheme
	}
	p.take(one.Key)
	return p, nil
}

// take puts a key into use. An answer to a request with an earlier key may still be under way.
func (p *provider) take(key Secret) {
	p.keys = append(p.keys, string(key))
	secrets := slices.Clone(p.keys)
	for _, value := range p.Extra {
		secrets = append(secrets, string(value))
	}
	secret, _ := redact.New(secrets...)
	p.held.Store(&held{key, secret})
}

// secret returns what knows the provider's key.
func (p *provider) secret() *redact.Redactor { return p.held.Load().secret }

// secrets returns every text of the provider that no line of the log may hold.
func (p *provider) secrets() []string {
	all := slices.Clone(p.keys)
	for _, values := range []map[string]Secret{p.Extra, p.Provider.Query} {
		for _, value := range values {
			all = append(all, string(value))
		}
	}
	return all
}

// verdict is what becomes of a request: it passes, or is refused. Whoever writes requests
// is hostile: what is not exactly as an agent's client sends it is refused rather than
// understood.
type verdict struct {
	Request            // what is told of it
	reason   string    // why it is refused, or what is wrong with it
	provider *provider // nil as long as none is told
	route    *route    // set: to be forwarded
	path     string    // below the upstream's base
	query    string
	local    bool  // the list of models, answered here
	answers  int64 // that it asks for
	refers   bool  // it names content that only the provider reads
}

func (v *verdict) deny(status int, reason string) {
	v.Refused, v.Status, v.reason = true, status, reason
}

// decide says what becomes of a request, before its body is read.
func (s *server) decide(q *http.Request) *verdict {
	v := &verdict{Request: Request{Method: q.Method}}
	switch plain, err := url.Parse(q.RequestURI); {
	case q.Method == http.MethodConnect:
		s.connects(q, v)
	case err == nil && plain.Scheme == "http" && s.knows(tokensIn(q.Header["Proxy-Authorization"])):
		v.Class = "http"
		host := strings.ToLower(net.JoinHostPort(plain.Hostname(), cmp.Or(plain.Port(), "80")))
		if len(host) <= maxTarget && only(host, ":[]") {
			v.Host = host
		}
		v.deny(http.StatusForbidden, "plain http; only https passes")
	default:
		s.asks(q, v)
	}
	return v
}

// asks decides on everything but CONNECT: one plain HTTP/1.1 request with its length
// told. The provider is found first because it says in which form a refusal has to be
// worded.
func (s *server) asks(q *http.Request, v *verdict) {
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
	case !s.knows(tokens):
		v.deny(http.StatusUnauthorized, wrongToken)
	case v.provider == nil:
		v.deny(http.StatusNotFound, "the path is not below this call and a provider of it")
	case q.Proto != "HTTP/1.1" || q.Header.Get("Upgrade") != "" || q.Header.Get("Content-Encoding") != "":
		v.deny(http.StatusBadRequest, "it is none of plain HTTP/1.1: no other protocol passes, and no encoded body")
	case len(q.TransferEncoding) > 0:
		// net/http forgets a Content-Length beside it; agents' clients always know the length.
		v.deny(http.StatusLengthRequired, "the body comes in chunks, without its length")
	default:
		v.query = strings.Join(pass, "&")
		v.find("/" + rest)
	}
	switch {
	case v.Refused:
	case q.ContentLength > s.Limits.Body:
		reason := "its body has %d bytes, and the gateway takes at most %d, whatever the model takes"
		v.deny(http.StatusRequestEntityTooLarge, fmt.Sprintf(reason, q.ContentLength, s.Limits.Body))
	case len(odd) > 0:
		v.deny(http.StatusBadRequest, fmt.Sprintf("the parameter %q is none that passes (docs/gateway.md)", clip(odd[0])))
	}
}

// find looks up what is asked of the provider. A path passes as a whole or not at all, so
// that nothing in it can be spelled in two ways.
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

// otherPath says that a request is not one of the API's, and which are. It names the API that
// the path belongs to, if there is one.
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

// match compares a path with a route's; "{model}" stands for one part of it.
func match(pattern, path string) (model string, ok bool) {
	before, behind, has := strings.Cut(pattern, inPath)
	if !has {
		return "", pattern == path
	}
	model, begins := strings.CutPrefix(path, before)
	model, ends := strings.CutSuffix(model, behind)
	return model, begins && ends && model != "" && !strings.ContainsAny(model, "/:")
}

// NotAllowed is how the reason ends with which a host is refused that nobody allowed.
const NotAllowed = " is not in network.allow"

const wrongToken = "the token is not this call's"

// connects decides on a tunnel: an exact name and port, and this call's token.
func (s *server) connects(q *http.Request, v *verdict) {
	v.Class = "connect"
	target := strings.ToLower(q.RequestURI)
	switch {
	case !s.knows(tokensIn(q.Header["Proxy-Authorization"])):
		v.deny(http.StatusProxyAuthRequired, wrongToken)
	case len(target) > maxTarget || !strings.Contains(target, ":") || !only(target, ":[]"):
		v.deny(http.StatusBadRequest, "the target is not a host and a port")
	default:
		if v.Host = target; !slices.ContainsFunc(s.Connect, func(one string) bool { return strings.EqualFold(one, target) }) {
			v.deny(http.StatusForbidden, clip(target)+NotAllowed)
		}
	}
}

// clip keeps a stranger's text short in a reason.
func clip(s string) string { return wording.Cut(s, 100) }

// only says whether s consists of letters, digits, "._-~" and what is in more.
func only(s, more string) bool {
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-~"+more) == ""
}

// tokensIn are those in the values of a header for credentials: tools know a proxy's
// user and password.
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

// knows says whether there is a token and every one is the call's. A request with
// two different ones is none that a client sends.
func (s *server) knows(tokens []string) bool {
	same := 1
	for _, t := range tokens {
		same &= subtle.ConstantTimeCompare([]byte(t), []byte(s.Call.Token))
	}
	return same == 1 && len(tokens) > 0
}
