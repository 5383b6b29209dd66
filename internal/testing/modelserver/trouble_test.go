package modelserver

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestTroubled(t *testing.T) {
	then := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "fine") })
	for _, c := range []struct {
		trouble Trouble
		status  int // 0: no complete response
		after   string
		says    string
	}{
		{"429", 429, "", "RESOURCE_EXHAUSTED"},
		{"429 7", 429, "7", `"retryDelay":"7s"`},
		{"500", 500, "", "INTERNAL"},
		{"odd", 500, "", "played"},
		{Half, 0, "", ""},
		{Silence, 0, "", ""},
		{Reset, 0, "", ""},
		{Slow, 0, "", ""},
		{Garbled, 200, "", "hello"},
		{Daily, 429, "", "PerDay"},
		{Broke, 403, "", "BILLING"},
		{Forged, 400, "", "API_KEY_INVALID"},
		{TooLong, 400, "", "token count"},
		{"429 90000", 429, "90000", `"retryDelay":"90000s"`},
		{TooBig, 400, "", "payload size"},
		{NoModel, 404, "", "NOT_FOUND"},
		{Loaded, 503, "", "UNAVAILABLE"},
		{Page, 200, "", "<html>"},
		{Empty, 200, "", ""},
	} {
		t.Run(string(c.trouble), func(t *testing.T) {
			t.Parallel()
			s := &Troubled{Then: then, Plan: func(n int64, model string) Trouble {
				if n == 1 && model == "m" {
					return c.trouble
				}
				return ""
			}}
			server := httptest.NewServer(s)
			defer server.Close()
			status, after, text := post(t, server.URL, c.trouble)
			if status != c.status || after != c.after || !strings.Contains(text, c.says) {
				t.Errorf("got status %d, Retry-After %q, body %q, want %d, %q and %q in the body",
					status, after, text, c.status, c.after, c.says)
			}
			if status, _, text := post(t, server.URL, c.trouble); status != 200 || text != "fine" || s.Asked() != 2 {
				t.Errorf("second request: got status %d, body %q, %d requests, want 200, %q and 2",
					status, text, s.Asked(), "fine")
			}
		})
	}
}

// Each API has its own format for the same trouble.
func TestTroubleHasTheFormatOfEachAPI(t *testing.T) {
	for _, c := range []struct {
		path    string
		trouble Trouble
		status  int
		says    string
	}{
		{"/v1beta/models/m:generateContent", Broke, 403, `"reason":"BILLING_DISABLED"`},
		{"/v1/messages", Broke, 400, `"message":"Your credit balance is too low`},
		{"/v1/responses", Broke, 429, `"code":"insufficient_quota"`},
		{"/v1/chat/completions", Broke, 429, `"code":"insufficient_quota"`},
		{"/v1/messages", "401", 401, `"type":"authentication_error"`},
		{"/v1/responses", "401", 401, `"code":"invalid_api_key"`},
		{"/v1/messages", TooLong, 400, `"prompt is too long`},
		{"/v1/chat/completions", TooLong, 400, `"code":"context_length_exceeded"`},
		{"/v1/messages", Daily, 400, `"You have reached your specified API usage limits`},
		{"/v1/responses", Daily, 429, `requests per day (RPD)`},
		{"/v1/messages", TooBig, 413, `"request_too_large"`},
		{"/v1/messages", Loaded, 529, `"overloaded_error"`},
		{"/v1/responses", Loaded, 503, `"server_is_overloaded"`},
		{"/v1/responses", "429 7", 429, `"rate_limit_exceeded"`},
		{"/v1/messages", "503", 503, `"played trouble 503"`},
	} {
		t.Run(c.path+" "+string(c.trouble), func(t *testing.T) {
			w := httptest.NewRecorder()
			c.trouble.ServeHTTP(w, httptest.NewRequest(http.MethodPost, c.path, nil))
			if w.Code != c.status || !strings.Contains(w.Body.String(), c.says) {
				t.Errorf("%s at %s: got %d %s, want %d and %s", c.trouble, c.path, w.Code, w.Body, c.status, c.says)
			}
		})
	}
}

// post sends a request. It gives up early if the response would never end.
func post(t *testing.T, at string, trouble Trouble) (status int, after, text string) {
	patience := time.Minute
	if trouble == Silence || trouble == Slow {
		patience = 2 * time.Second
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, at+"/v1beta/models/m:generateContent", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		return 0, "", ""
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return 0, "", ""
	}
	return r.StatusCode, r.Header.Get("Retry-After"), string(body)
}
