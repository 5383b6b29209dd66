package gateway

import (
	"net/http"
	"strings"
	"sync"
	"testing"
)

// A body of a few bytes can have the provider read a million tokens. Requests with such a body do
// not pass a bound together: it is passed by one answer at most.
func TestReferencesAreReserved(t *testing.T) {
	const n = 8
	u := serve(t, say(http.StatusOK, "text/event-stream", gemini(500_000, 1))) // 10 USD
	r := start(t, priced(u.URL, Bound{Of: "call", USD: usd("1")}))
	body := `{"contents":[{"parts":[{"fileData":{"fileUri":"https://video.example/long"}}]}],"generationConfig":{"maxOutputTokens":1}}`
	var all sync.WaitGroup
	for range n {
		all.Go(func() { r.post(gen, body) })
	}
	all.Wait()
	var last Entry
	for range n {
		last = r.next(Requested)
	}
	if asked := len(u.requests()); asked != 1 || *last.Sum.SpentUSD != *usd("10.00002") {
		t.Errorf("requests to the provider: got %d for %s USD, want 1 for 10.00002", asked, last.Sum.SpentUSD)
	}
}

func TestRefers(t *testing.T) {
	for body, want := range map[string]bool{
		`{"contents":[{"parts":[{"fileData":{"mimeType":"video/mp4","fileUri":"https://a.example"}}]}]}`:                true,
		`{"contents":[{"parts":[{"file_data":{"file_uri":"https://a.example"}}]}]}`:                                     true,
		`{"contents":[{"parts":[{"functionResponse":{"parts":[{"fileData":{"file\u0055ri":"https://a.example"}}]}}]}]}`: true,
		`{"messages":[{"content":[{"type":"document","source":{"type":"url","url":"https://a.example"}}]}]}`:            true,
		`{"messages":[{"content":[{"content":[{"type":"image","source":{"url":"https://a.example","type":"url"}}]}]}]}`: true,
		`{"messages":[{"content":[{"type":"document","source":{"type":"file","file_id":"f"}}]}]}`:                       true,
		`{"messages":[{"content":[{"type":"image_url","image_url":{"url":"https://a.example"}}]}]}`:                     true,
		`{"input":[{"content":[{"type":"input_image","image_url":"https://a.example"}]}]}`:                              true,
		`{"input":[{"content":[{"type":"input_file","file_url":"https://a.example"}]}]}`:                                true,
		`{"input":[{"":"", "n":1e9999, "content":[[{"x":null}],{"file_id":"f"}]}]}`:                                     true,
		`{"messages":[`: true,

		`{"input":[{"content":[{"type":"input_image","image_url":"data:image/png;base64,AA=="}]}]}`:                        false,
		`{"messages":[{"content":[{"image_url":{"url":"data:image/png;base64,AA=="}}]}]}`:                                  false,
		`{"messages":[{"content":[{"type":"image","source":{"type":"base64","data":"AA=="}}]}]}`:                           false,
		`{"contents":[{"parts":[{"text":"fileUri"},{"functionCall":{"args":{"url":"https://a.example","l":[[1],[]]}}}]}]}`: false,
		`{"contents":[],"n":1e9999}`: false,
		`{}`:                         false,
	} {
		t.Run(strings.ReplaceAll(body, "/", "|"), func(t *testing.T) {
			if got := refers([]byte(body)); got != want {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}
