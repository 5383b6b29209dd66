package modelserver

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// Trouble is a failure of a provider: an HTTP status, with an optional Retry-After in seconds
// ("429 2"), or one of the constants below.
type Trouble string

// The troubles that are not a status. "" means no trouble.
const (
	Half    Trouble = "half"    // a response that stops in the middle
	Silence Trouble = "silence" // no response while the client waits
	Reset   Trouble = "reset"   // the connection is closed without a response
	Slow    Trouble = "slow"    // one byte at a time, without end
	Garbled Trouble = "garbled" // JSON that is not in the API's format
	Daily   Trouble = "daily"   // the day's quota is used up
	Broke   Trouble = "broke"   // the account has no credit
	Forged  Trouble = "forged"  // the key is refused with status 400
	TooLong Trouble = "toolong" // the prompt is longer than the model's limit
	TooBig  Trouble = "toobig"  // the request is larger than the API's limit
	NoModel Trouble = "nomodel" // the provider does not have the model
	Loaded  Trouble = "loaded"  // the model is overloaded
	Page    Trouble = "page"    // a web page, like that of a proxy or a portal
	Empty   Trouble = "empty"   // a stream without an event
)

// Troubled is a provider with troubles. Plan returns the trouble of the nth request for a model,
// counted from 1. A request without one goes to Then.
type Troubled struct {
	Plan func(n int64, model string) Trouble
	Then http.Handler
	n    atomic.Int64
}

// Asked returns the number of requests.
func (s *Troubled) Asked() int64 { return s.n.Load() }

// ServeHTTP implements http.Handler.
func (s *Troubled) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	model := ""
	if m := method.FindStringSubmatch(r.URL.Path); m != nil {
		model = m[1]
	}
	if t := s.Plan(s.n.Add(1), model); t != "" {
		// The server notices that a client has disconnected only after reading the whole body.
		_, _ = io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, maxBody))
		t.ServeHTTP(w, r)
		return
	}
	s.Then.ServeHTTP(w, r)
}

// ServeHTTP responds to every request with the trouble.
func (t Trouble) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch t {
	case Half:
		w.Header().Set("Content-Length", "1000")
		fmt.Fprint(w, `data: {"candidates":[{"content":`)
	case Silence:
		<-r.Context().Done()
	case Reset:
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			conn.Close()
		}
	case Slow:
		drip(w, r)
	case Unended, Erring, Jumbled, Limited, Declined, Blank:
		t.play(w, r.URL.Path)
	case Garbled:
		writeJSON(w, http.StatusOK, map[string]any{"hello": "world"})
	case Page:
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<!DOCTYPE html><html><body>Sign in to this network.</body></html>")
	case Empty:
		w.Header().Set("Content-Type", "text/event-stream")
	default:
		_, after, _ := strings.Cut(string(t), " ")
		if after != "" {
			w.Header().Set("Retry-After", after)
		}
		f := refusalOf(r.URL.Path, t)
		writeJSON(w, f.status, f.body)
	}
}

// drip sends white space, which is valid before JSON, until the client disconnects.
func drip(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
			if _, err := fmt.Fprint(w, " "); err != nil || http.NewResponseController(w).Flush() != nil {
				return
			}
		}
	}
}
