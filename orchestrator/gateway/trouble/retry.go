package trouble

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// longest is beyond every honest wait, and keeps sums of waits in bounds.
const longest = 31 * 24 * time.Hour

// retry is how long the provider asks to wait: in its headers, or else in its
// words. Of several the longest counts; 0 is none, or one that cannot be read.
func retry(h http.Header, a answer, now time.Time) time.Duration {
	var most time.Duration
	for _, d := range []time.Duration{
		milliseconds(h.Get("Retry-After-Ms")), after(h.Get("Retry-After"), now), length(a.delay),
	} {
		most = max(most, min(d, longest))
	}
	return most
}

// after reads the standard header: seconds, or a date.
func after(text string, now time.Time) time.Duration {
	text = strings.TrimSpace(text)
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		return scaled(seconds, time.Second)
	}
	if at, err := http.ParseTime(text); err == nil {
		return at.Sub(now)
	}
	return 0
}

func milliseconds(text string) time.Duration {
	ms, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil {
		return 0
	}
	return scaled(ms, time.Millisecond)
}

// scaled keeps out what no duration holds.
func scaled(n float64, unit time.Duration) time.Duration {
	if !(n > 0) { // not a number, too
		return 0
	}
	if n > float64(longest/unit) {
		return longest
	}
	return time.Duration(n * float64(unit))
}

func length(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0
	}
	return d
}
