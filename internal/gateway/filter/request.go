// Package filter decides which requests may pass the gateway, and says why not.
// It reads requests and does nothing else. Whoever writes them is hostile: what is
// not exactly as an agent's client sends it is refused rather than understood.
package filter

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"abl/internal/wording"
)

const (
	maxHeaders = 100
	maxTarget  = 1024      // bytes of a request's
	inPath     = "{model}" // in a Route
)

// Rules are what one call may do.
type Rules struct {
	Call      string // the first part of every path
	Token     [sha256.Size]byte
	Providers map[string]*Provider
	Connect   map[string]bool // "host:port", lower case
	MaxBody   int64           // bytes
}

// Provider is one upstream with what may be asked of it.
type Provider struct {
	API
	Upstream *url.URL
	Key      string
	Models   []string
}

// Verdict is what becomes of a request: it passes, or Status and Reason say why not.
type Verdict struct {
	Status    int
	Reason    string
	Provider  *Provider // nil as long as none is told
	Class     string    // for the log
	Model     string
	Route     *Route // set: to be forwarded
	Path      string // below the upstream's base
	Query     string
	Local     bool   // the list of models, answered here
	MaxTokens int64  // that the request allows for its answer; 0 where it does not say
	Connect   string // host:port to be connected with
}

// Refused says whether the request does not pass.
func (v *Verdict) Refused() bool { return v.Status != 0 }

// Hash is how a token is kept, so that comparing takes the same time for every one.
func Hash(token string) [sha256.Size]byte { return sha256.Sum256([]byte(token)) }

// Decide says what becomes of a request, before its body is read.
func (r *Rules) Decide(q *http.Request) Verdict {
	var v Verdict
	if q.Method == http.MethodConnect {
		v.Class = "connect"
		r.connect(q, &v)
		return v
	}
	if host, is := proxied(q.RequestURI); is && r.knows(proxyCredentials(q.Header)) {
		v.Class, v.Connect = "http", host
		v.refuse(http.StatusForbidden, "plain http is passed on to nobody: only https goes through, by CONNECT")
		return v
	}
	r.ask(q, &v)
	return v
}

// ask decides on everything but CONNECT. The provider is found first because it
// says in which form a refusal has to be worded.
func (r *Rules) ask(q *http.Request, v *Verdict) {
	path, query, odd := split(q.RequestURI)
	rest := ""
	if odd == "" {
		call, below, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
		name, below, _ := strings.Cut(below, "/")
		if call == r.Call {
			v.Provider, rest = r.Providers[name], "/"+below
		}
	}
	switch {
	case !r.knows(credentials(q.Header, query)):
		v.refuse(http.StatusUnauthorized, "the token is not this call's")
	case odd != "":
		v.refuse(http.StatusBadRequest, odd)
	case v.Provider == nil:
		v.refuse(http.StatusNotFound, "the path is not below this call and a provider of it")
	default:
		if r.framed(q, v); !v.Refused() {
			v.Provider.route(q.Method, rest, query, v)
		}
	}
}

func (v *Verdict) refuse(status int, reason string) { v.Status, v.Reason = status, reason }

// single are headers of which a second value would mean something else to another
// program.
var single = []string{"Authorization", "Content-Length", "Content-Type", "X-Api-Key", "X-Goog-Api-Key"}

// framed refuses what is not one plain HTTP/1.1 request with its length told.
func (r *Rules) framed(q *http.Request, v *Verdict) {
	count := 0
	for _, values := range q.Header {
		count += len(values)
	}
	for _, name := range single {
		if len(q.Header.Values(name)) > 1 {
			v.refuse(http.StatusBadRequest, "the header "+name+" is there twice")
		}
	}
	switch {
	case v.Refused():
	case q.ProtoMajor != 1 || q.ProtoMinor != 1:
		v.refuse(http.StatusHTTPVersionNotSupported, "the request is not HTTP/1.1")
	case count > maxHeaders:
		v.refuse(http.StatusRequestHeaderFieldsTooLarge, "there are too many headers")
	case q.Header.Get("Upgrade") != "":
		v.refuse(http.StatusUpgradeRequired, "there is no other protocol here")
	case len(q.TransferEncoding) > 0:
		// net/http forgets a Content-Length beside it; agents' clients always know the length.
		v.refuse(http.StatusLengthRequired, "the body comes in chunks, without its length")
	case q.Header.Get("Content-Encoding") != "":
		v.refuse(http.StatusUnsupportedMediaType, "the body is encoded")
	case q.ContentLength > r.MaxBody:
		v.refuse(http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is longer than %d bytes", r.MaxBody))
	}
}

// route finds what is asked of the provider.
func (p *Provider) route(method, path string, query []parameter, v *Verdict) {
	var route *Route
	var model string
	for i := range p.Routes {
		if name, ok := match(p.Routes[i].Path, path); ok {
			route, model = &p.Routes[i], name
		}
	}
	switch {
	case route != nil && method == http.MethodPost:
		v.Class, v.Model = route.Class, model
		if model != "" && !slices.Contains(p.Models, model) {
			v.refuse(http.StatusForbidden, p.otherModel(model))
		} else if v.Query = p.query(query, v); !v.Refused() {
			v.Route, v.Path = route, strings.TrimPrefix(path, p.Strip)
		}
	case path == p.List && method == http.MethodGet:
		v.Class, v.Local = "models", true
	case route != nil || path == p.List:
		v.refuse(http.StatusMethodNotAllowed, "the path has no such method")
	default:
		v.refuse(http.StatusNotFound, fmt.Sprintf("the path %q is none that passes (docs/gateway.md)", clip(path)))
	}
}

// query is what is passed on of one.
func (p *Provider) query(query []parameter, v *Verdict) string {
	var pass []string
	for _, q := range query {
		switch {
		case q.name == "key": // the token
		case slices.Contains(p.Queries, q.name):
			pass = append(pass, q.name+"="+q.value)
		default:
			v.refuse(http.StatusBadRequest, fmt.Sprintf("the parameter %q is none that passes (docs/gateway.md)", clip(q.name)))
		}
	}
	return strings.Join(pass, "&")
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

// connect decides on a tunnel: an exact name and port, and this call's token.
func (r *Rules) connect(q *http.Request, v *Verdict) {
	host, port, err := net.SplitHostPort(q.RequestURI)
	target := strings.ToLower(q.RequestURI)
	switch {
	case !r.knows(proxyCredentials(q.Header)):
		v.refuse(http.StatusProxyAuthRequired, "the token is not this call's")
	case err != nil || host == "" || port == "" || len(target) > maxTarget || !only(target, ":[]"):
		v.refuse(http.StatusBadRequest, "the target is not a host and a port")
	case q.Host != q.RequestURI:
		v.refuse(http.StatusBadRequest, "the Host header names another host")
	case len(q.TransferEncoding) > 0 || q.ContentLength > 0:
		v.refuse(http.StatusBadRequest, "a CONNECT has no body")
	case !r.Connect[target]:
		v.Connect = target
		v.refuse(http.StatusForbidden, clip(target)+NotAllowed)
	default:
		v.Connect = target
	}
}

// clip keeps a stranger's text short in a reason.
func clip(s string) string { return wording.Cut(s, 100) }

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
	all := slices.Concat(h.Values("X-Goog-Api-Key"), h.Values("X-Api-Key"))
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
func proxyCredentials(h http.Header) (all []string) {
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
