package meter

import (
	"net/http"
	"testing"
	"time"

	"abl/internal/outcome"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestOf(t *testing.T) {
	type h map[string]string
	const google = `{"error":{"code":429,"message":"Quota exceeded","status":"RESOURCE_EXHAUSTED","details":[`
	for _, c := range []struct {
		name   string
		status int
		header h
		body   string
		want   Problem
	}{
		{"no words at all", 429, nil, "", Problem{outcome.RateLimited, false, 0, "Too Many Requests"}},
		{"seconds", 429, h{"Retry-After": "30"}, "slow down", Problem{outcome.RateLimited, false, 30 * time.Second, "Too Many Requests"}},
		{"a date", 503, h{"Retry-After": "Sun, 01 Mar 2026 12:05:00 GMT"}, "", Problem{outcome.Unavailable, false, 5 * time.Minute, "Service Unavailable"}},
		{"a date that is over", 429, h{"Retry-After": "Sun, 01 Mar 2026 11:05:00 GMT"}, "", Problem{outcome.RateLimited, false, 0, "Too Many Requests"}},
		{"milliseconds", 429, h{"Retry-After-Ms": "1500", "Retry-After": "1"}, "", Problem{outcome.RateLimited, false, 1500 * time.Millisecond, "Too Many Requests"}},
		{"nonsense", 429, h{"Retry-After": "NaN", "Retry-After-Ms": "-3"}, "", Problem{outcome.RateLimited, false, 0, "Too Many Requests"}},
		{"ten thousand years", 429, h{"Retry-After": "1e300"}, "", Problem{outcome.Quota, false, longestWait, "Too Many Requests"}},
		{"google, a minute's", 429, nil, google + `{"@type":"x/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerMinutePerProjectPerModel"}]},{"@type":"x/google.rpc.RetryInfo","retryDelay":"33.5s"}]}}`, Problem{outcome.RateLimited, false, 33500 * time.Millisecond, "Quota exceeded"}},
		{"google, a day's", 429, nil, google + `{"violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}]}}`, Problem{outcome.Quota, false, 0, "Quota exceeded"}},
		{"google, in a list", 429, nil, `[` + google + `]}}]`, Problem{outcome.RateLimited, false, 0, "Quota exceeded"}},
		{"google, the key", 400, nil, `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}`, Problem{outcome.Refused, false, 0, "API key not valid. Please pass a valid API key."}},
		{"google, forbidden", 403, nil, `{"error":{"status":"PERMISSION_DENIED","message":"no"}}`, Problem{outcome.Refused, false, 0, "no"}},
		{"google, too long", 400, nil, `{"error":{"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}`, Problem{outcome.TooLarge, false, 0, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."}},
		{"google, too many bytes", 400, nil, `{"error":{"message":"Request payload size exceeds the limit: 20971520 bytes.","status":"INVALID_ARGUMENT"}}`, Problem{outcome.TooLarge, false, 0, "Request payload size exceeds the limit: 20971520 bytes."}},
		{"google, load", 503, nil, `{"error":{"message":"The model is overloaded.","status":"UNAVAILABLE"}}`, Problem{outcome.Unavailable, false, 0, "The model is overloaded."}},
		{"google, odd", 400, nil, `{"error":{"message":"bad schema","status":"INVALID_ARGUMENT"}}`, Problem{outcome.Failed, false, 0, "bad schema"}},
		{"anthropic, rate", 429, h{"Retry-After": "7"}, `{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}`, Problem{outcome.RateLimited, false, 7 * time.Second, "slow"}},
		{"anthropic, load", 529, nil, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, Problem{outcome.Unavailable, false, 0, "Overloaded"}},
		{"anthropic, key", 401, nil, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`, Problem{outcome.Refused, false, 0, "invalid x-api-key"}},
		{"anthropic, long", 400, nil, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`, Problem{outcome.TooLarge, false, 0, "prompt is too long: 210000 tokens > 200000 maximum"}},
		{"anthropic, a month's limit", 400, nil, `{"type":"error","error":{"type":"invalid_request_error","message":"You have reached your specified API usage limits. You will regain access on 2099-01-01 at 00:00 UTC."}}`, Problem{outcome.Quota, false, 0, "You have reached your specified API usage limits. You will regain access on 2099-01-01 at 00:00 UTC."}},
		{"anthropic, too many bytes", 413, nil, `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`, Problem{outcome.TooLarge, false, 0, "Request exceeds the maximum size"}},
		{"anthropic, no money", 400, nil, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the API."}}`, Problem{outcome.Quota, true, 0, "Your credit balance is too low to access the API."}},
		{"openai, no money", 429, h{"Retry-After": "2"}, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`, Problem{outcome.Quota, true, 2 * time.Second, "You exceeded your current quota"}},
		{"openai, a day's requests", 429, nil, `{"error":{"message":"Rate limit reached for m on requests per day (RPD): Limit 200, Used 200. Please try again in 7m12s.","type":"requests","code":"rate_limit_exceeded"}}`, Problem{outcome.Quota, false, 0, "Rate limit reached for m on requests per day (RPD): Limit 200, Used 200. Please try again in 7m12s."}},
		{"openai, a day's tokens", 429, nil, `{"error":{"message":"Rate limit reached on tokens per day (TPD)","type":"tokens","code":"rate_limit_exceeded"}}`, Problem{outcome.Quota, false, 0, "Rate limit reached on tokens per day (TPD)"}},
		{"openai, rate", 429, nil, `{"error":{"message":"Rate limit reached","type":"tokens","code":"rate_limit_exceeded"}}`, Problem{outcome.RateLimited, false, 0, "Rate limit reached"}},
		{"openai, rate, as a 403", 403, nil, `{"error":{"message":"Rate limit reached","type":"requests","code":"rate_limit_exceeded"}}`, Problem{outcome.RateLimited, false, 0, "Rate limit reached"}},
		{"openai, long", 400, nil, `{"error":{"message":"This model's maximum context length is 8192 tokens","type":"invalid_request_error","code":"context_length_exceeded"}}`, Problem{outcome.TooLarge, false, 0, "This model's maximum context length is 8192 tokens"}},
		{"openai, key", 401, nil, `{"error":{"message":"Incorrect API key","code":"invalid_api_key"}}`, Problem{outcome.Refused, false, 0, "Incorrect API key"}},
		{"a text for an error", 500, nil, `{"error":"boom"}`, Problem{outcome.Unavailable, false, 0, "boom"}},
		{"half a body", 500, nil, `{"error":{"mess`, Problem{outcome.Unavailable, false, 0, "Internal Server Error"}},
		{"openai, no such model", 404, nil, `{"error":{"message":"The model ` + "`m`" + ` does not exist or you do not have access to it.","type":"invalid_request_error","code":"model_not_found"}}`, Problem{outcome.NoModel, false, 0, "The model `m` does not exist or you do not have access to it."}},
		{"anthropic, no such model", 404, nil, `{"type":"error","error":{"type":"not_found_error","message":"model: m"}}`, Problem{outcome.NoModel, false, 0, "model: m"}},
		{"a router, no such model", 400, nil, `{"error":{"message":"m is not a valid model ID","code":400}}`, Problem{outcome.NoModel, false, 0, "m is not a valid model ID"}},
		{"a page that is not there", 404, nil, "404 page not found", Problem{outcome.Failed, false, 0, "Not Found"}},
		{"other types", 429, nil, `{"error":{"code":429,"message":{"a":1},"type":3,"details":{"reason":1}}}`, Problem{outcome.RateLimited, false, 0, "Too Many Requests"}},
		{"a page", 502, nil, "<html>Bad Gateway</html>", Problem{outcome.Unavailable, false, 0, "Bad Gateway"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			header := http.Header{}
			for name, value := range c.header {
				header.Set(name, value)
			}
			if got := Of(c.status, header, []byte(c.body), noon); got != c.want {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

// A requested wait is never negative or endless.
func FuzzOf(f *testing.F) {
	f.Add(429, "30", `{"error":{"message":"x","details":[{"retryDelay":"1s"}]}}`)
	f.Add(400, "Sun, 01 Mar 2026 12:05:00 GMT", `[{"error":{"status":"a"}}]`)
	f.Add(529, "1e400", `data: {"error":"x"}`)
	f.Fuzz(func(t *testing.T, status int, after, body string) {
		got := Of(status, http.Header{"Retry-After": {after}}, []byte(body), noon)
		if got.Retry < 0 || got.Retry > longestWait {
			t.Errorf("wait: got %s, want 0 to %s", got.Retry, longestWait)
		}
		m := New(Gemini)
		m.Write([]byte(body))
		if got, failed := m.Failed(http.Header{"Retry-After": {after}}, noon); got.Retry < 0 || got.Retry > longestWait || failed != (got.Class != "") {
			t.Errorf("trouble in a stream: got %+v, failed %t, want a wait of 0 to %s, and failed only with a class",
				got, failed, longestWait)
		}
	})
}
