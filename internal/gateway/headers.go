package gateway

import (
	"net/http"
	"net/textproto"
	"strconv"
	"strings"

	"abl/internal/gateway/filter"
)

// outward are the headers with which a request goes to its provider: those of the
// client's that the provider's API knows, and the key in place of the token.
func outward(from http.Header, p *filter.Provider) http.Header {
	to := http.Header{
		"Accept-Encoding": {"identity"}, // usage could not be read out of anything else
		"User-Agent":      {""},         // without one net/http would name itself
	}
	for name, values := range from {
		if listed(name, filter.Common) || listed(name, p.Headers) {
			to[name] = values
		}
	}
	for _, name := range []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key"} {
		to.Del(name)
	}
	switch {
	case p.Key == "":
	case p.Auth == filter.Bearer:
		to.Set("Authorization", "Bearer "+p.Key)
	default:
		to.Set(p.Auth, p.Key)
	}
	return to
}

// listed looks a header's name up; "X-*" in the list stands for all that begin so.
func listed(name string, list []string) bool {
	for _, entry := range list {
		prefix, many := strings.CutSuffix(entry, "*")
		if name == entry || many && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// ours are the headers of an answer that concern the connection with the provider,
// or that an agent has no business with.
var ours = []string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding",
	"Upgrade", "Content-Length", "Set-Cookie", "Alt-Svc", "Strict-Transport-Security", "Clear-Site-Data",
}

// inward copies an answer's headers for the client. A value with the key in it is
// left out.
func inward(to, from http.Header, key string) {
	drop := append([]string(nil), ours...)
	for _, v := range from.Values("Connection") {
		for name := range strings.SplitSeq(v, ",") {
			drop = append(drop, textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name)))
		}
	}
	for name, values := range from {
		if listed(name, drop) || key != "" && strings.Contains(strings.Join(values, "\n"), key) {
			continue
		}
		to[name] = values
	}
}

// setLength tells the client an answer's length where it is known, so that it
// can see when the answer is cut.
func setLength(h http.Header, n int64) {
	if n >= 0 {
		h.Set("Content-Length", strconv.FormatInt(n, 10))
	}
}
