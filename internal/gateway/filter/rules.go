// Package filter decides which requests may pass the gateway, and says why not.
// It reads requests and does nothing else. Whoever writes them is hostile: what is
// not exactly as an agent's client sends it is refused rather than understood.
package filter

import (
	"crypto/sha256"
	"net/http"
	"net/url"
	"strings"
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

// Refusal is why a request does not pass.
type Refusal struct {
	Status int
	Reason string
}

// Verdict is what becomes of a request. The zero Refusal means that it passes.
type Verdict struct {
	Refusal
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
		if !r.framed(q, v) {
			return
		}
		v.Provider.route(q.Method, rest, query, v)
	}
}

func (v *Verdict) refuse(status int, reason string) { v.Refusal = Refusal{status, reason} }
