package outcome

import "testing"

func TestFromHTTP(t *testing.T) {
	for status, want := range map[int64]Outcome{
		200: "", 400: "", 401: Refused, 402: Quota, 403: Refused, 404: "", 413: TooLarge, 429: RateLimited, 500: Unavailable, 529: Unavailable, 599: Unavailable, 600: "",
	} {
		if got := FromHTTP(status); got != want {
			t.Errorf("FromHTTP(%d): got %q, want %q", status, got, want)
		}
	}
}
