package meter

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// failure is an error as any of the APIs words it; what is missing is empty.
type failure struct {
	is      bool // an error at all
	message string
	words   []string // codes, types, states and reasons, in lower case
	delay   string   // Google's RetryInfo, as "30s"
	daily   bool     // the quota is one of a day
	code    int      // its status, where it names one
}

func (a failure) has(any ...string) bool {
	return slices.ContainsFunc(any, func(w string) bool { return slices.Contains(a.words, w) })
}

func (a *failure) note(w string) {
	if w != "" {
		a.words = append(a.words, strings.ToLower(w))
	}
}

// readFailure takes an error apart. Some of Google's come as a list with one entry, and
// streams put an error behind "data:". Members of other types than these are passed over.
func readFailure(body []byte) (a failure) {
	text := bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(body), []byte(dataField)))
	var list []json.RawMessage
	if json.Unmarshal(text, &list) == nil && len(list) > 0 {
		text = list[0]
	}
	raw := errorIn(text)
	switch string(raw) {
	case "", "null", "false", `""`, "{}": // a member that says that there is none
		return a
	}
	a.is = true
	var inner struct {
		Message string
		Code    any // a word in other APIs than Google's
		Type    string
		Status  string
		Details []struct {
			Reason     string
			RetryDelay string
			Violations []struct{ QuotaID string }
		}
	}
	_ = json.Unmarshal(raw, &inner)
	_ = json.Unmarshal(raw, &a.message) // an error may be no more than its words
	a.message = cmp.Or(inner.Message, a.message)
	switch code := inner.Code.(type) {
	case float64:
		a.code = int(code)
	case string:
		a.note(code)
	}
	a.note(inner.Type)
	a.note(inner.Status)
	for _, d := range inner.Details {
		a.note(d.Reason)
		a.delay = cmp.Or(d.RetryDelay, a.delay)
		for _, v := range d.Violations {
			a.daily = a.daily || strings.Contains(strings.ToLower(v.QuotaID), "perday")
		}
	}
	return a
}

// errorIn is the error of an answer or of an event: a member of it, of the response
// that it tells the end of, or all of an event that is one.
func errorIn(text []byte) json.RawMessage {
	var outer struct {
		Type     string
		Error    json.RawMessage
		Response struct{ Error json.RawMessage }
	}
	_ = json.Unmarshal(text, &outer)
	switch {
	case len(outer.Error) > 0:
		return outer.Error
	case outer.Type == "error":
		return text
	}
	return outer.Response.Error
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
func (a failure) status() int {
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

// longestWait is beyond every honest wait, and keeps sums of waits in bounds.
const longestWait = 31 * 24 * time.Hour

// retry is how long the provider asks to wait: in its headers, or else in its
// words. Of several the longest counts; 0 is none, or one that cannot be read.
func (a failure) retry(h http.Header, now time.Time) time.Duration {
	after := h.Get("Retry-After")
	date, err := http.ParseTime(after)
	if err != nil {
		date = now
	}
	delay, _ := time.ParseDuration(a.delay)
	return min(max(0, wait(h.Get("Retry-After-Ms"), time.Millisecond), wait(after, time.Second), date.Sub(now), delay), longestWait)
}

func wait(text string, unit time.Duration) time.Duration {
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || !(n > 0) { // not a number, too
		return 0
	}
	return time.Duration(min(n*float64(unit), float64(longestWait)))
}
