package modelserver

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"abl/internal/gateway/meter"
	"abl/internal/outcome"
)

// The gateway recognizes each trouble in the format of each API.
func TestGatewayRecognizesTroublesInAStream(t *testing.T) {
	paths := map[meter.API]string{
		meter.Gemini: "/v1beta/models/m:streamGenerateContent", meter.Anthropic: "/v1/messages",
		meter.Responses: "/v1/responses", meter.Chat: "/v1/chat/completions",
	}
	for _, c := range []struct {
		trouble        Trouble
		failed, broken bool
		ends           []outcome.Outcome // expected classes of the finish reason
	}{
		{Unended, false, false, nil},
		{Erring, true, false, []outcome.Outcome{outcome.Unavailable}}, // Responses also has a status
		{Jumbled, false, true, nil},
		{Limited, false, false, []outcome.Outcome{outcome.Cut}},
		{Declined, false, false, []outcome.Outcome{outcome.Filtered}},
		{Blank, false, false, []outcome.Outcome{""}},
	} {
		for api, path := range paths {
			t.Run(string(c.trouble)+"/"+string(api), func(t *testing.T) {
				w := httptest.NewRecorder()
				c.trouble.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, nil))
				text := w.Body.String()
				m := meter.New(api)
				_, _ = m.Write([]byte(text))
				said, failed := m.Failed(http.Header{}, time.Time{})
				if failed != c.failed || m.Broken(true) != c.broken || strings.Contains(text, "All is done.") != (c.trouble != Blank) {
					t.Errorf("got failed %t, broken %t, want %t, %t: %s", failed, m.Broken(true), c.failed, c.broken, text)
				}
				if failed && said.Class != outcome.Unavailable {
					t.Errorf("got an error of class %q, want %q", said.Class, outcome.Unavailable)
				}
				switch finish := m.Finish(); {
				case finish == "" && (c.trouble == Limited || c.trouble == Declined || c.trouble == Blank), finish != "" && !slices.Contains(c.ends, meter.OfFinish(finish)):
					t.Errorf("got the finish reason %q, want one of %q", finish, c.ends)
				}
			})
		}
	}
}
