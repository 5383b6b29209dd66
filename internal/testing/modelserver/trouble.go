package modelserver

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// Trouble is a way in which a provider fails a request: a status, with a
// Retry-After in seconds behind it ("429 2"), or one of the words below.
type Trouble string

// The troubles that are no status. "" is none.
const (
	Half    Trouble = "half"    // an answer that stops in its middle
	Silence Trouble = "silence" // no answer while the client waits
	Reset   Trouble = "reset"   // the connection is closed in place of an answer
	Slow    Trouble = "slow"    // a byte now and then, without an end
	Garbled Trouble = "garbled" // JSON, and nothing of the API's
	Daily   Trouble = "daily"   // the day's quota is used up
	Broke   Trouble = "broke"   // nobody has paid
	Forged  Trouble = "forged"  // the key is refused with the status of a bad request
	TooLong Trouble = "toolong" // the prompt is longer than the model takes
	TooBig  Trouble = "toobig"  // the request has more bytes than the API takes
	NoModel Trouble = "nomodel" // the provider does not have the model
	Loaded  Trouble = "loaded"  // the model is overloaded
	Page    Trouble = "page"    // a web page, as of a proxy or a portal
	Empty   Trouble = "empty"   // a stream without an event
)

// Troubled is a provider in trouble: Plan says what befalls the nth request, from 1
// on, for a model; what nothing befalls goes to Then.
type Troubled struct {
	Plan func(n int64, model string) Trouble
	Then http.Handler
	n    atomic.Int64
}

// Asked is how many requests came.
func (s *Troubled) Asked() int64 { return s.n.Load() }

// ServeHTTP implements http.Handler.
func (s *Troubled) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	model := ""
	if m := method.FindStringSubmatch(r.URL.Path); m != nil {
		model = m[1]
	}
	if t := s.Plan(s.n.Add(1), model); t != "" {
		// Read to its end, or the server would not notice that a client has gone.
		_, _ = io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, maxBody))
		t.ServeHTTP(w, r)
		return
	}
	s.Then.ServeHTTP(w, r)
}

// ServeHTTP answers every request with the trouble.
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

// drip sends white space, which begins every JSON text, for as long as somebody reads.
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
