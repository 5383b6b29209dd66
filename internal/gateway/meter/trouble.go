package meter

import (
	"cmp"
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

// GaveUp reports whether a status means that a server in front of the model stopped waiting for
// it: the model may finish the response, and the provider may charge for it. 499 is nginx's and
// Google's status for a canceled request, 524 is Cloudflare's for a provider that is too slow.
func GaveUp(status int) bool {
	return slices.Contains([]int{http.StatusRequestTimeout, 499, http.StatusGatewayTimeout, 524}, status)
}

// Of reads an error answer. now is when it came, for a Retry-After with a date.
func Of(status int, h http.Header, body []byte, now time.Time) Told {
	m := New(Gemini) // or any other: all word an error alike
	_, _ = m.Write(body)
	m.settle()
	return m.failure.told(status, h, http.StatusText(status), now)
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
	daily := a.daily || a.says("requests per day", "tokens per day") // OpenAI's limits of a day have no code
	if t.Class = a.class(status); t.Paid || t.Class == outcome.RateLimited && (daily || t.Retry > patience) {
		t.Class = outcome.Quota
	}
	return t
}

// says looks for a part of the provider's own sentence.
func (a failure) says(any ...string) bool {
	text := strings.ToLower(a.message)
	return slices.ContainsFunc(any, func(part string) bool { return strings.Contains(text, part) })
}

// classes are what the APIs' words for an error mean, whatever the status beside them is.
var classes = map[string]outcome.Outcome{
	"api_key_invalid": outcome.Refused, "invalid_api_key": outcome.Refused, "authentication_error": outcome.Refused,
	"unauthenticated": outcome.Refused, "permission_error": outcome.Refused, "permission_denied": outcome.Refused,
	"context_length_exceeded": outcome.TooLarge, "request_too_large": outcome.TooLarge,
	"rate_limit_error": outcome.RateLimited, "rate_limit_exceeded": outcome.RateLimited,
	"too_many_requests": outcome.RateLimited, "resource_exhausted": outcome.RateLimited,
	"overloaded_error": outcome.Unavailable, "model_not_found": outcome.NoModel,
}

// class goes by the words and the status of an error.
func (a failure) class(status int) outcome.Outcome {
	for _, w := range a.words {
		if class := classes[w]; class != "" {
			return class
		}
	}
	bad := status == http.StatusBadRequest
	switch {
	case bad && a.says("prompt is too long", "maximum number of tokens", "maximum context length", "input token count",
		"payload size exceeds the limit"): // Google refuses bytes with 400, others with 413
		return outcome.TooLarge
	case bad && a.says("reached your specified api usage limits"): // Anthropic's limits of a month
		return outcome.Quota
	case status == http.StatusNotFound && a.says("model") || bad && a.says("not a valid model", "unknown model", "model not found"):
		return outcome.NoModel
	case status == http.StatusRequestTimeout:
		return outcome.Unavailable
	}
	return cmp.Or(outcome.FromHTTP(int64(status)), outcome.Failed)
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

// readFailure takes an error apart: what stands for one in an answer, or all of an event
// that is one.
func readFailure(raw []byte) (a failure) {
	switch string(raw) {
	case "null", "false", `""`, "{}": // a member that says that there is none
		return a
	}
	a.is, a.message = true, Text(raw) // an error may be no more than its words
	_ = Walk("", raw, func(place string, value []byte) bool {
		word := Text(value)
		switch place {
		case "message":
			a.message = word
		case "code": // a word in other APIs than Google's
			a.code, _ = strconv.Atoi(string(value))
			fallthrough
		case "type", "status", "details.reason":
			a.words = append(a.words, strings.ToLower(word))
		case "details.retryDelay":
			a.delay = word
		case "details.violations.quotaId":
			a.daily = a.daily || strings.Contains(strings.ToLower(word), "perday")
		}
		return place == "details" || place == "details.violations"
	})
	return a
}

// status is the status that an error would have had as an answer of its own: the
// provider had taken the request, so that what no word says is its own trouble.
func (a failure) status() int {
	switch {
	case a.code >= http.StatusBadRequest && a.code < 600: // some have numbers of their own
		return a.code
	case a.has("invalid_request_error", "invalid_argument", "invalid_prompt"):
		return http.StatusBadRequest
	case a.has("not_found_error", "not_found"):
		return http.StatusNotFound
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
// Others are an end as it should be, or one that the agent itself goes on from. Failed is an
// end that the model itself got wrong.
var ends = map[string]outcome.Outcome{
	"max_tokens": outcome.Cut, "length": outcome.Cut, "max_output_tokens": outcome.Cut, FullContext: outcome.Cut,
	"safety": outcome.Filtered, "recitation": outcome.Filtered, "language": outcome.Filtered, "blocklist": outcome.Filtered,
	"prohibited_content": outcome.Filtered, "spii": outcome.Filtered, "image_safety": outcome.Filtered,
	"content_filter": outcome.Filtered, "refusal": outcome.Filtered, "other": outcome.Filtered,
	"incomplete": outcome.Cut, // Responses, without a reason
	"failed":     outcome.Unavailable, "cancelled": outcome.Unavailable, "error": outcome.Unavailable,
	"malformed_function_call": outcome.Failed, "malformed_response": outcome.Failed,
	"unexpected_tool_call": outcome.Failed, "too_many_tool_calls": outcome.Failed, "missing_thought_signature": outcome.Failed,
}

// OfFinish is what is wrong with an answer that ended with this word, "" for nothing.
func OfFinish(word string) outcome.Outcome { return ends[strings.ToLower(word)] }
