package gateway

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	callID    = "p1-build-1.1"
	callTok   = "token-0123456789abcdef"
	realKey   = "sk-REAL-canary-9f8e7d6c5b4a"
	shortBody = `{"contents":[],"generationConfig":{      }}`
	most      = int64(len(shortBody)) + 65_536                // tokens of a request with it
	modelled  = `{"model":"m1","metadata":{               }}` // for APIs with the model in the body
)

// rig is a gateway in this process with its connections.
type rig struct {
	t     testing.TB
	addr  string
	in    *io.PipeWriter
	lines chan Entry
	done  chan error
	stop  context.CancelFunc

	mu  sync.Mutex
	raw bytes.Buffer // all output
}

// under makes the rig report errors to a subtest until the subtest ends.
func (r *rig) under(t *testing.T) {
	was := r.t
	r.t = t
	t.Cleanup(func() { r.t = was })
}

// setup returns a setup for the upstream's address, with all APIs.
func setup(upstream string) Setup {
	s := Setup{Listen: "127.0.0.1:0", Call: Call{ID: callID, Token: callTok, Deadline: time.Now().Add(time.Hour).Unix()}}
	for _, name := range []string{"gemini", "anthropic", "openai-responses", "openai-chat"} {
		s.Providers = append(s.Providers, Provider{Name: name, Upstream: upstream, Key: realKey, Models: []string{"m1", "m2"}})
	}
	return s
}

// launch starts a process and sends it the lines.
func launch(t testing.TB, d Dialer, send ...string) *rig {
	in, feed := io.Pipe()
	log, out := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	r := &rig{t: t, in: feed, lines: make(chan Entry, 1<<16), done: make(chan error, 1), stop: cancel}
	go func() {
		err := Process{In: in, Out: out, Dialer: d}.Run(ctx)
		out.Close()
		r.done <- err
	}()
	go r.follow(log)
	for _, line := range send {
		r.send(line)
	}
	t.Cleanup(func() { cancel(); feed.Close() })
	return r
}

// start launches a gateway and waits until it listens.
func start(t testing.TB, s Setup) *rig {
	t.Helper()
	return startWith(t, Dialer{}, s)
}

func startWith(t testing.TB, d Dialer, s Setup) *rig {
	t.Helper()
	r := launch(t, d, encode(t, s))
	r.addr = r.next(Ready).Listen
	return r
}

func encode(t testing.TB, v any) string {
	t.Helper()
	line, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(line)
}

func (r *rig) send(line string) {
	if _, err := io.WriteString(r.in, line+"\n"); err != nil {
		r.t.Error(err)
	}
}

func (r *rig) follow(log io.Reader) {
	defer close(r.lines)
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		r.mu.Lock()
		r.raw.Write(append(lines.Bytes(), '\n'))
		r.mu.Unlock()
		var e Entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			r.t.Errorf("line of the log: got %q, error %v, want JSON", lines.Text(), err)
		}
		r.lines <- e
	}
}

// next waits for a line of a kind and skips others.
func (r *rig) next(kind string) Entry {
	r.t.Helper()
	for {
		select {
		case e, open := <-r.lines:
			if !open {
				r.t.Fatalf("whole log: got %s, want a line %q", r.log(), kind)
			}
			if e.Kind == kind {
				return e
			}
		case <-time.After(time.Minute):
			r.t.Fatalf("log after a minute: got %s, want a line %q", r.log(), kind)
		}
	}
}

func (r *rig) log() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.raw.String()
}

// reply is a response as the client received it.
type reply struct {
	status int
	header http.Header
	body   string
	err    error // the response was incomplete
}

// post sends a body below the call's path, with the token.
func (r *rig) post(path, body string) reply {
	r.t.Helper()
	q, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, "http://"+r.addr+"/"+callID+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	q.Header.Set("X-Goog-Api-Key", callTok)
	return r.do(q)
}

func (r *rig) do(q *http.Request) reply {
	r.t.Helper()
	resp, err := client.Do(q)
	if err != nil {
		return reply{err: err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(body), err}
}

// client shares no connections between tests and follows no redirect.
var client = &http.Client{
	Transport:     &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 600},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// upstream is a provider that responds by f and records the requests.
type upstream struct {
	*httptest.Server
	mu   sync.Mutex
	seen []*http.Request
}

func serve(t testing.TB, f http.HandlerFunc) *upstream {
	t.Helper()
	u := &upstream{}
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		u.mu.Lock()
		u.seen = append(u.seen, q)
		u.mu.Unlock()
		if _, err := io.Copy(io.Discard, q.Body); err != nil {
			t.Error(err)
		}
		f(w, q)
	}))
	t.Cleanup(u.Close)
	return u
}

func (u *upstream) requests() []*http.Request {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]*http.Request(nil), u.seen...)
}

// say responds with a text.
func say(status int, kind, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		io.WriteString(w, text)
	}
}

// numbers prints a usage.
func numbers(e Entry) string {
	if e.Usage == nil {
		return "none"
	}
	line, err := json.Marshal(e.Usage)
	if err != nil {
		return err.Error()
	}
	return strings.NewReplacer(`"`, "", "{", "", "}", "", "null", "-").Replace(string(line))
}
