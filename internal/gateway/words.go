package gateway

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/textproto"
	"strings"

	"abl/internal/gateway/meter"
	"abl/internal/redact"
)

// What stands between a gateway and a server on abl's machine says with this header
// of an error that the server gave no answer, and whether it may have been asked.
const (
	NoAnswer = "Abl-No-Answer"
	Asked    = "asked"
	NotAsked = "not asked"
)

type object map[string]any

// statusWords are the APIs' names of the statuses with which the gateway itself answers;
// 4 and 5 stand for all others that begin so.
var statusWords = map[meter.API]map[int]string{
	meter.Gemini: {
		401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 502: "UNAVAILABLE", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
		4: "INVALID_ARGUMENT", 5: "INVALID_ARGUMENT",
	},
	meter.Anthropic: {
		401: "authentication_error", 403: "permission_error", 404: "not_found_error", 413: "request_too_large", 503: "overloaded_error",
		4: "invalid_request_error", 5: "api_error",
	},
	meter.Chat: {401: "authentication_error", 403: "permission_error", 4: "invalid_request_error", 5: "server_error"},
}

// errorWords is the body of an error answer as the provider itself would word it, so
// that its client shows the message instead of choking on it. Clients of an
// unknown API get OpenAI's form, the most copied one.
func errorWords(kind meter.API, status int, message string) []byte {
	if statusWords[kind] == nil {
		kind = meter.Chat
	}
	word := cmp.Or(statusWords[kind][status], statusWords[kind][status/100])
	switch kind {
	case meter.Gemini:
		return encodeJSON(object{"error": object{"code": status, "message": message, "status": word}})
	case meter.Anthropic:
		return encodeJSON(object{"type": "error", "error": object{"type": word, "message": message}})
	}
	return encodeJSON(object{"error": object{"message": message, "type": word, "param": nil, "code": nil}})
}

// modelList is the answer to the question which models there are. Every API's clients
// find what they look for in the same list.
func modelList(models []string) []byte {
	all := make([]object, len(models))
	for i, m := range models {
		all[i] = object{
			"object": "model", "type": "model", "id": m, "display_name": m, "owned_by": "abl",
			"name": "models/" + m, "displayName": m, "supportedGenerationMethods": []string{"generateContent", "countTokens"},
		}
	}
	return encodeJSON(object{"object": "list", "data": all, "models": all, "has_more": false})
}

func encodeJSON(v object) []byte {
	data, _ := json.Marshal(v) // strings and numbers always encode
	return data
}

// outward are the headers with which a request goes to its provider: those of the
// client's that the provider's API knows, of which none holds a token, and the key.
func outward(from http.Header, p *provider) http.Header {
	to := http.Header{
		"Accept-Encoding": {"identity"}, // usage could not be read out of anything else
		"User-Agent":      {""},         // without one net/http would name itself
	}
	for name, values := range from {
		if listed(name, common) || listed(name, p.Headers) {
			to[name] = values
		}
	}
	if p.Key != "" {
		to.Set(p.Auth, p.Scheme+string(p.Key))
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
func inward(to, from http.Header, secret *redact.Redactor) {
	drop := append([]string(nil), ours...)
	for _, v := range from.Values("Connection") {
		for name := range strings.SplitSeq(v, ",") {
			drop = append(drop, textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name)))
		}
	}
	for name, values := range from {
		if listed(name, drop) || secret.Holds([]byte(strings.Join(values, "\n"))) {
			continue
		}
		to[name] = values
	}
}
