package trouble

import (
	"bytes"
	"encoding/json"
	"net/http"
	"time"
)

// InStream reads the end of an answer that began well: a provider that fails
// after its status has gone out says so in an event of the stream, or in the last
// document of a list. tail is the end of the answer, or all of it; false is that
// it ends in no error.
func InStream(tail []byte, h http.Header, now time.Time) (Told, bool) {
	if !bytes.Contains(tail, []byte("error")) { // every API calls it so, and most answers have none
		return Told{}, false
	}
	last := lastEvent(tail)
	if last == nil {
		last = lastDocument(tail)
	}
	a := read(last)
	if !a.failed {
		return Told{}, false
	}
	t := Told{Retry: retry(h, a, now), Words: a.Message}
	t.Kind = kind(a.status(), a, t.Retry)
	if t.Words == "" {
		t.Words = "an error without a word"
	}
	return t, true
}

// lastEvent is the data of the last server-sent event that says something, nil
// where the text is no such stream.
func lastEvent(text []byte) []byte {
	for len(text) > 0 {
		at := bytes.LastIndexByte(text, '\n') + 1
		line := bytes.TrimSpace(text[at:])
		text = bytes.TrimSuffix(text[:at], []byte("\n"))
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			if data = bytes.TrimSpace(data); string(data) != "[DONE]" {
				return data
			}
		}
	}
	return nil
}

// lastDocument is the last entry of a list of which text is the end, or the one
// document that it is; nil for anything else.
func lastDocument(text []byte) []byte {
	if text = bytes.TrimSpace(text); json.Valid(text) && bytes.HasPrefix(text, []byte("{")) {
		return text
	}
	text = bytes.TrimSpace(bytes.TrimSuffix(text, []byte("]")))
	for end := len(text); end > 0; {
		at := bytes.LastIndexByte(text[:end], '{')
		if at < 0 {
			return nil
		}
		before := bytes.TrimSpace(text[:at])
		begins := bytes.HasSuffix(before, []byte("[")) || bytes.HasSuffix(before, []byte(","))
		if one := text[at:]; begins && json.Valid(one) {
			return one
		}
		end = at
	}
	return nil
}

// statuses are what the APIs' own words for an error are as a status, for an error
// that comes without one. Whatever is not here is the provider's own trouble: it
// had taken the request.
var statuses = map[string]int{
	"rate_limit_error": http.StatusTooManyRequests, "rate_limit_exceeded": http.StatusTooManyRequests,
	"too_many_requests": http.StatusTooManyRequests, "resource_exhausted": http.StatusTooManyRequests,
	"authentication_error": http.StatusUnauthorized, "invalid_api_key": http.StatusUnauthorized, "unauthenticated": http.StatusUnauthorized,
	"permission_error": http.StatusForbidden, "permission_denied": http.StatusForbidden,
	"request_too_large": http.StatusRequestEntityTooLarge, "overloaded_error": overloaded,
	"invalid_request_error": http.StatusBadRequest, "invalid_argument": http.StatusBadRequest, "invalid_prompt": http.StatusBadRequest,
	"not_found_error": http.StatusNotFound, "not_found": http.StatusNotFound,
}

// status is the status that an error would have had as an answer of its own.
func (a answer) status() int {
	if a.code >= http.StatusBadRequest {
		return a.code
	}
	for _, w := range a.words {
		if s, ok := statuses[w]; ok {
			return s
		}
	}
	return http.StatusInternalServerError
}
