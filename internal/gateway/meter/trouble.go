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

// Problem is the content of an error response.
type Problem struct {
	Class outcome.Outcome // Failed if the request is wrong
	Paid  bool            // the account needs money
	Retry time.Duration   // the requested wait, 0 for none
	Words string          // the provider's message, unchanged
}

// patience is the longest wait that is left to the agent. A longer one ends its call, and abl repeats
// the call later.
const patience = 5 * time.Minute

// Lasting reports whether every request of the same call will get this error.
func (t Problem) Lasting() bool {
	return t.Retry > patience || t.Class == outcome.Refused || t.Class == outcome.Quota || t.Class == outcome.NoModel
}

// GaveUp reports whether a status means that a server in front of the model stopped waiting for
// it: the model may finish the response, and the provider may charge for it. 499 is nginx's and
// Google's status for a canceled request, 524 is Cloudflare's for a provider that is too slow.
func GaveUp(status int) bool {
	return slices.Contains([]int{http.StatusRequestTimeout, 499, http.StatusGatewayTimeout, 524}, status)
}

// Of reads an error response. now is the time of its arrival, for a Retry-After with a date.
func Of(status int, h http.Header, body []byte, now time.Time) Problem {
	m := New(Gemini) // errors have the same form in all APIs
	_, _ = m.Write(body)
	m.flush()
	return m.failure.problem(status, h, http.StatusText(status), now)
}

// Failed returns the error at the end of a response with a good status. A provider that fails after it
// sent the status reports the error in the last event of the stream, or in the last document of a
// list.
func (m *Meter) Failed(h http.Header, now time.Time) (Problem, bool) {
	m.flush()
	if !m.failure.is {
		return Problem{}, false
	}
	return m.failure.problem(m.failure.status(), h, "an error without a message", now), true
}

// problem returns the problem of an error with a status. message replaces an empty message.
func (a failure) problem(status int, h http.Header, message string, now time.Time) Problem {
	t := Problem{Retry: a.retry(h, now), Words: cmp.Or(a.message, message)}
	t.Paid = status == http.StatusPaymentRequired || a.says("credit balance is too low") ||
		a.has("insufficient_quota", "billing_disabled", "billing_error", "billing_not_active")
	daily := a.daily || a.says("requests per day", "tokens per day") // OpenAI's daily limits have no code
	t.Class = a.class(status)
	if t.Paid || t.Class == outcome.RateLimited && (daily || t.Retry > patience) {
		t.Class = outcome.Quota
	}
	return t
}

// says reports whether the provider's message contains one of the parts.
func (a failure) says(any ...string) bool {
	text := strings.ToLower(a.message)
	return slices.ContainsFunc(any, func(part string) bool { return strings.Contains(text, part) })
}

// meanings lists words of the APIs, in lower case, by their meaning.
type meanings map[outcome.Outcome]string

// of returns the meaning of a word, "" for an unknown one.
func (m meanings) of(word string) outcome.Outcome {
	for meaning, list := range m {
		if slices.Contains(strings.Fields(list), strings.ToLower(word)) {
			return meaning
		}
	}
	return ""
}

// classes are the APIs' error types and codes, whatever the status is.
var classes = meanings{
	outcome.Refused: "api_key_invalid invalid_api_key authentication_error unauthenticated permission_error " +
		"permission_denied",
	outcome.TooLarge:    "context_length_exceeded request_too_large",
	outcome.RateLimited: "rate_limit_error rate_limit_exceeded too_many_requests resource_exhausted",
	outcome.Unavailable: "overloaded_error",
	outcome.NoModel:     "model_not_found",
}

// class returns the class of an error by its codes, message and status.
func (a failure) class(status int) outcome.Outcome {
	for _, w := range a.words {
		if class := classes.of(w); class != "" {
			return class
		}
	}
	bad := status == http.StatusBadRequest
	switch {
	case bad && a.says("prompt is too long", "maximum number of tokens", "maximum context length", "input token count",
		"payload size exceeds the limit"): // Google refuses bytes with 400, others with 413
		return outcome.TooLarge
	case bad && a.says("reached your specified api usage limits"): // Anthropic's monthly limits
		return outcome.Quota
	case status == http.StatusNotFound && a.says("model"),
		bad && a.says("not a valid model", "unknown model", "model not found"):
		return outcome.NoModel
	case status == http.StatusRequestTimeout:
		return outcome.Unavailable
	}
	return cmp.Or(outcome.FromHTTP(int64(status)), outcome.Failed)
}

// failure is an error of any API. Missing parts are empty.
type failure struct {
	is      bool // there is an error
	message string
	words   []string // codes, types, states and reasons, in lower case
	delay   string   // Google's RetryInfo, as "30s"
	daily   bool     // the quota is daily
	code    int      // its status, 0 without one
}

func (a failure) has(any ...string) bool {
	return slices.ContainsFunc(any, func(w string) bool { return slices.Contains(a.words, w) })
}

// readFailure reads an error: the member of a response, or a whole event of type error.
func readFailure(raw []byte) (a failure) {
	switch string(raw) {
	case "null", "false", `""`, "{}": // no error
		return a
	}
	a.is, a.message = true, Text(raw) // an error may be only a message
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

// status returns the status that fits an error at the end of a response. The provider had accepted
// the request, so an error without a code is its own fault.
func (a failure) status() int {
	switch {
	case a.code >= http.StatusBadRequest && a.code < 600: // some servers use their own numbers
		return a.code
	case a.has("invalid_request_error", "invalid_argument", "invalid_prompt"):
		return http.StatusBadRequest
	case a.has("not_found_error", "not_found"):
		return http.StatusNotFound
	}
	return http.StatusInternalServerError
}

// longestWait bounds a wait, so that sums of waits cannot overflow.
const longestWait = 31 * 24 * time.Hour

// retry returns the wait that the provider requests in a header or in the error, the longest if there
// are several, 0 without a wait that can be read.
func (a failure) retry(h http.Header, now time.Time) time.Duration {
	after := h.Get("Retry-After")
	date, err := http.ParseTime(after)
	if err != nil {
		date = now
	}
	delay, _ := time.ParseDuration(a.delay)
	return min(max(0, wait(h.Get("Retry-After-Ms"), time.Millisecond), wait(after, time.Second), date.Sub(now), delay),
		longestWait)
}

func wait(text string, unit time.Duration) time.Duration {
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || !(n > 0) { // also NaN
		return 0
	}
	return time.Duration(min(n*float64(unit), float64(longestWait)))
}

// FullContext is Anthropic's finish reason for a response that was cut because the conversation fills
// the context of the model.
const FullContext = "model_context_window_exceeded"

// ends are the providers' finish reasons with a fault. All others are normal, or the agent continues
// after them. Failed means that the output of the model is invalid.
var ends = meanings{
	// The Responses API has incomplete without a reason.
	outcome.Cut: "max_tokens length max_output_tokens incomplete " + FullContext,
	outcome.Filtered: "safety recitation language blocklist prohibited_content spii image_safety content_filter refusal " +
		"other",
	outcome.Unavailable: "failed cancelled error",
	outcome.Failed: "malformed_function_call malformed_response unexpected_tool_call too_many_tool_calls " +
		"missing_thought_signature",
}

// OfFinish returns the fault of a finish reason, "" for none.
func OfFinish(word string) outcome.Outcome { return ends.of(word) }
