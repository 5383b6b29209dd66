package meter

import (
	"cmp"
	"net/http"
	"strings"
	"time"
)

// Kind is what is wrong with a request or its answer.
type Kind string

// The kinds; "" is none, or nothing that is the provider's.
const (
	Login   Kind = "login"   // the key is refused
	Rate    Kind = "rate"    // too many requests for now
	Quota   Kind = "quota"   // a quota that is filled up again by itself is used up
	Credit  Kind = "credit"  // nothing comes before somebody pays
	Away    Kind = "away"    // an error of the provider's own, or too much load
	Network Kind = "network" // no connection with the provider, or one that broke before an answer
	Silent  Kind = "silent"  // the request was taken and not answered
	Cut     Kind = "cut"     // the answer has no end
	Garbled Kind = "garbled" // the answer is none of a model's
	Large   Kind = "large"   // the prompt is longer than the model takes
	NoModel Kind = "model"   // there is no such model, or not for this key
	Odd     Kind = "odd"     // another error: the request itself is refused
	Length  Kind = "length"  // the answer was cut at a limit of tokens
	Window  Kind = "window"  // the answer was cut since the conversation fills the model's context
	Filter  Kind = "filter"  // a filter, or the model itself, declined to answer
	Unended Kind = "unended" // the answer came whole and does not say that it is finished
	Denied  Kind = "denied"  // this gateway refused the request, and the provider was not asked
)

// Told is what an error answer tells.
type Told struct {
	Kind  Kind
	Retry time.Duration // how long to wait; 0 when it does not say
	Words string        // the provider's own sentence, as it came
}

// patience is how long a wait may be that is left to an agent: a longer one ends its
// call, which is made again when it makes sense.
const patience = 5 * time.Minute

// Lasting says that no request of the same call will be answered otherwise.
func (t Told) Lasting() bool {
	switch t.Kind {
	case Login, Quota, Credit, NoModel:
		return true
	}
	return t.Retry > patience
}

// overloaded is Anthropic's status for too much load.
const overloaded = 529

// Of reads an error answer. now is when it came, for a Retry-After with a date.
func Of(status int, h http.Header, body []byte, now time.Time) Told {
	a := readFailure(body)
	t := Told{Retry: a.retry(h, now), Words: cmp.Or(a.message, http.StatusText(status))}
	t.Kind = a.kind(status, t.Retry)
	return t
}

// Failed says what is wrong where the answer, which began well, ends in an error: a
// provider that fails after its status has gone out says so in the last event of the
// stream, or in the last document of a list.
func (m *Meter) Failed(h http.Header, now time.Time) (Told, bool) {
	m.settle()
	a := m.failure
	if !a.is {
		return Told{}, false
	}
	t := Told{Retry: a.retry(h, now), Words: cmp.Or(a.message, "an error without a word")}
	t.Kind = a.kind(a.status(), t.Retry)
	return t, true
}

// kind goes by the status and the words of an error.
func (a failure) kind(status int, wait time.Duration) Kind {
	text := strings.ToLower(a.message)
	says := func(any ...string) bool {
		for _, part := range any {
			if strings.Contains(text, part) {
				return true
			}
		}
		return false
	}
	switch {
	case a.has("insufficient_quota", "billing_disabled", "billing_error", "billing_not_active") || says("credit balance is too low"):
		return Credit
	case status == http.StatusUnauthorized || a.has("api_key_invalid", "invalid_api_key", "authentication_error"):
		return Login
	case status == http.StatusForbidden, a.has("permission_error"):
		return Login // the key may not do what is asked
	case status == http.StatusRequestEntityTooLarge || a.has("context_length_exceeded", "request_too_large") ||
		status == http.StatusBadRequest && says("prompt is too long", "maximum number of tokens", "maximum context length", "input token count"):
		return Large
	case status == http.StatusTooManyRequests || a.has("rate_limit_error", "rate_limit_exceeded"):
		if a.daily || wait > patience {
			return Quota
		}
		return Rate
	case status >= http.StatusInternalServerError || status == overloaded || status == http.StatusRequestTimeout || a.has("overloaded_error"):
		return Away
	case a.has("model_not_found") || status == http.StatusNotFound && says("model") || status == http.StatusBadRequest && says("not a valid model", "unknown model", "model not found"):
		return NoModel
	case status >= http.StatusBadRequest:
		return Odd
	}
	return ""
}

// ends are what the providers' words for the end of an answer mean, in lower case.
// Others are an end as it should be, or one that the agent itself goes on from.
var ends = map[string]Kind{
	"": Unended, "max_tokens": Length, "length": Length, "max_output_tokens": Length, "model_context_window_exceeded": Window,
	"safety": Filter, "recitation": Filter, "language": Filter, "blocklist": Filter, "prohibited_content": Filter, "spii": Filter,
	"image_safety": Filter, "content_filter": Filter, "refusal": Filter, "other": Filter,
}

// OfFinish is what is wrong with an answer that ended with this word, "" for nothing.
func OfFinish(word string) Kind { return ends[strings.ToLower(word)] }
