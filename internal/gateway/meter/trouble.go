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

	"abl/internal/outcome"
)

// Told is what an error answer tells.
type Told struct {
	Class outcome.Outcome // Failed where the request itself is at fault
	Paid  bool            // nothing comes before somebody pays
	Retry time.Duration   // how long to wait; 0 when it does not say
	Words string          // the provider's own sentence, as it came
}

// patience is how long a wait may be that is left to an agent: a longer one ends its
// call, which is made again when it makes sense.
const patience = 5 * time.Minute

// Lasting says that no request of the same call will be answered otherwise.
func (t Told) Lasting() bool {
	return t.Retry > patience || t.Class == outcome.Refused || t.Class == outcome.Quota || t.Class == outcome.NoModel
}

// overloaded is Anthropic's status for too much load.
const overloaded = 529

// Of reads an error answer. now is when it came, for a Retry-After with a date.
func Of(status int, h http.Header, body []byte, now time.Time) Told {
	return readFailure(body).told(status, h, http.StatusText(status), now)
}

// Failed says what is wrong where the answer, which began well, ends in an error: a
// provider that fails after its status has gone out says so in the last event of the
// stream, or in the last document of a list.
func (m *Meter) Failed(h http.Header, now time.Time) (Told, bool) {
	m.settle()
	if !m.failure.is {
		return Told{}, false
	}
	return m.failure.told(m.failure.status(), h, "an error without a word", now), true
}

func (a failure) told(status int, h http.Header, wordless string, now time.Time) Told {
	t := Told{Retry: a.retry(h, now), Words: cmp.Or(a.message, wordless)}
	t.Paid = status == http.StatusPaymentRequired || a.says("credit balance is too low") ||
		a.has("insufficient_quota", "billing_disabled", "billing_error", "billing_not_active")
	if t.Class = a.class(status, t.Retry); t.Paid {
		t.Class = outcome.Quota
	}
	return t
}

// says looks for a part of the provider's own sentence.
func (a failure) says(any ...string) bool {
	text := strings.ToLower(a.message)
	return slices.ContainsFunc(any, func(part string) bool { return strings.Contains(text, part) })
}

// class goes by the status and the words of an error.
func (a failure) class(status int, wait time.Duration) outcome.Outcome {
	class, bad := outcome.FromHTTP(int64(status)), status == http.StatusBadRequest
	switch {
	case class == outcome.Refused || a.has("api_key_invalid", "invalid_api_key", "authentication_error", "permission_error"):
		return outcome.Refused
	case class == outcome.TooLarge || a.has("context_length_exceeded", "request_too_large") ||
		bad && a.says("prompt is too long", "maximum number of tokens", "maximum context length", "input token count"):
		return outcome.TooLarge
	case class == outcome.RateLimited || a.has("rate_limit_error", "rate_limit_exceeded"):
		if a.daily || wait > patience {
			return outcome.Quota
		}
		return outcome.RateLimited
	case class == outcome.Unavailable || status == http.StatusRequestTimeout || a.has("overloaded_error"):
		return outcome.Unavailable
	case a.has("model_not_found") || status == http.StatusNotFound && a.says("model") || bad && a.says("not a valid model", "unknown model", "model not found"):
		return outcome.NoModel
	}
	return outcome.Failed
}

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
	if a.code >= http.StatusBadRequest && a.code < 600 { // some have numbers of their own
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

// FullContext is Anthropic's word for an answer that was cut since the conversation
// fills the model's context.
const FullContext = "model_context_window_exceeded"

// ends are what the providers' words for the end of an answer mean, in lower case.
// Others are an end as it should be, or one that the agent itself goes on from.
var ends = map[outcome.Outcome][]string{
	outcome.Cut: {"max_tokens", "length", "max_output_tokens", FullContext},
	outcome.Filtered: {
		"safety", "recitation", "language", "blocklist", "prohibited_content", "spii", "image_safety", "content_filter", "refusal", "other",
	},
}

// OfFinish is what is wrong with an answer that ended with this word, "" for nothing.
func OfFinish(word string) outcome.Outcome {
	for class, words := range ends {
		if slices.Contains(words, strings.ToLower(word)) {
			return class
		}
	}
	return ""
}
