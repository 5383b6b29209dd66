package gateway

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// stream is a typical response of a model: events of about a hundred bytes, and one with the usage.
type stream struct {
	events []string
	whole  string
	pause  time.Duration // between two events
}

func newStream(events int, pause time.Duration) stream {
	s := stream{pause: pause}
	for i := range events {
		s.events = append(s.events, fmt.Sprintf("data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"some words of answer number %02d, as long as they come, and some more\"}],\"role\":\"model\"},\"index\":0}],\"modelVersion\":\"m1\"}\r\n\r\n", i))
	}
	s.events = append(s.events, "data: {\"candidates\":[{\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":1000,\"candidatesTokenCount\":50,\"totalTokenCount\":1050}}\r\n\r\n")
	s.whole = strings.Join(s.events, "")
	return s
}

func (s stream) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	if _, err := io.Copy(io.Discard, q.Body); err != nil {
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range s.events {
		if _, err := io.WriteString(w, e); err != nil {
			return
		}
		flush(w)
		if s.pause > 0 {
			time.Sleep(s.pause)
		}
	}
}

// prompt is a request of 4 KB.
var prompt = `{"contents":[{"role":"user","parts":[{"text":"` + strings.Repeat("word ", 800) + `"}]}]}`

// load sends requests, atOnce at a time, and returns their times and the number of wrong responses.
func load(url string, want string, requests, atOnce int) (took []time.Duration, wrong int64) {
	took = make([]time.Duration, requests)
	var next, bad atomic.Int64
	var all sync.WaitGroup
	for range atOnce {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(requests); i = next.Add(1) - 1 {
				begun := time.Now()
				if err := one(url, want); err != nil {
					bad.Add(1)
				}
				took[i] = time.Since(begun)
			}
		})
	}
	all.Wait()
	return took, bad.Load()
}

func one(url, want string) error {
	q, err := http.NewRequest(http.MethodPost, url, strings.NewReader(prompt))
	if err != nil {
		return err
	}
	q.Header.Set("X-Goog-Api-Key", callTok)
	resp, err := client.Do(q)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && string(body) != want {
		err = fmt.Errorf("%d bytes of %d", len(body), len(want))
	}
	return err
}

// TestNoAnswerIsCut: the standard reverse proxy loses some of as many.
func TestNoAnswerIsCut(t *testing.T) {
	const requests = 2500
	s := newStream(50, 0)
	r := start(t, setup(serve(t, s.ServeHTTP).URL))
	if _, wrong := load("http://"+r.addr+"/"+callID+gen, s.whole, requests, 64); wrong > 0 {
		t.Errorf("responses that differ from the provider's: got %d of %d, want none", wrong, requests)
	}
	for range requests {
		if e := r.next(Requested); e.Req.Cut || e.Req.Status != http.StatusOK || e.Usage == nil || *e.Usage.Total != 1050 || e.Req.Out != int64(len(s.whole)) {
			t.Fatalf("log: got %+v, %+v, want status 200, not cut, %d bytes and 1050 tokens", e, e.Req, len(s.whole))
		}
	}
}
