package filter

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
)

const maxHeaders = 100

// single are headers of which a second value would mean something else to another
// program.
var single = []string{"Authorization", "Content-Length", "Content-Type", "X-Api-Key", "X-Goog-Api-Key"}

// framed refuses what is not one plain HTTP/1.1 request with its length told.
func (r *Rules) framed(q *http.Request, v *Verdict) bool {
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
	return !v.Refused()
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
		p.take(route, model, query, v)
	case path == p.List && method == http.MethodGet:
		v.Class, v.Local = "models", true
	case route != nil || path == p.List:
		v.refuse(http.StatusMethodNotAllowed, "the path has no such method")
	default:
		v.refuse(http.StatusNotFound, fmt.Sprintf("the path %q is none that passes (docs/gateway.md)", clip(path)))
	}
}

// take accepts a route if its model and query are in order.
func (p *Provider) take(route *Route, model string, query []parameter, v *Verdict) {
	v.Class, v.Model = route.Class, model
	if route.InPath && !slices.Contains(p.Models, model) {
		v.refuse(http.StatusForbidden, p.otherModel(model))
		return
	}
	var pass []string
	for _, q := range query {
		switch {
		case q.name == "key": // the token
		case slices.Contains(p.Queries, q.name):
			pass = append(pass, q.name+"="+q.value)
		default:
			v.refuse(http.StatusBadRequest, fmt.Sprintf("the parameter %q is none that passes (docs/gateway.md)", clip(q.name)))
			return
		}
	}
	v.Route, v.Path, v.Query = route, strings.ReplaceAll(route.To, "{model}", model), strings.Join(pass, "&")
}

// match compares a path with a route's; "{model}" stands for one part of it.
func match(pattern, path string) (model string, ok bool) {
	before, behind, has := strings.Cut(pattern, "{model}")
	if !has {
		return "", pattern == path
	}
	if len(path) < len(before)+len(behind) || !strings.HasPrefix(path, before) || !strings.HasSuffix(path, behind) {
		return "", false
	}
	model = path[len(before) : len(path)-len(behind)]
	return model, model != "" && !strings.ContainsAny(model, "/:")
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
func clip(s string) string {
	const most = 100
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
