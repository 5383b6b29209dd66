package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"abl/internal/sandbox"
)

// badLine serves the parts of the engine's API that copying, attaching and Info need. The first
// request whose path has the given end fails in the way that the test selects.
type badLine struct {
	path, fault string
	met         sync.Once
	asked       chan struct{} // closed when that request has arrived
	copied      bytes.Buffer
}

// The faults of one request.
const (
	cutBefore  = "is cut before the engine reads it"
	lost       = "is done and its answer lost"
	halved     = "is done and the end of its answer cut off"
	fallsApart = "meets an engine that shuts down"
	noAnswer   = "is never answered"
)

func (b *badLine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fails := false
	if strings.HasSuffix(r.URL.Path, b.path) {
		b.met.Do(func() { fails = true })
	}
	if fails {
		defer close(b.asked)
	}
	if fails && b.fault == noAnswer {
		b.asked <- struct{}{}
		<-r.Context().Done()
		return
	}
	if fails && b.fault != cutBefore {
		_, _ = io.Copy(io.Discard, r.Body)
	}
	conn, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	answer := b.answer(r)
	switch {
	case fails && b.fault == fallsApart:
		const text = `{"message":"database not open"}`
		answer = fmt.Sprintf("HTTP/1.1 500 Internal Server Error\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
	case fails && b.fault == halved:
		answer = answer[:len(answer)-8]
	case fails:
		return
	}
	if strings.HasSuffix(r.URL.Path, "/archive") && !fails {
		_, _ = io.Copy(&b.copied, r.Body)
	}
	_, _ = buf.WriteString(answer)
	_ = buf.Flush()
	if strings.HasSuffix(r.URL.Path, "/attach") && !fails {
		_, _ = io.Copy(&b.copied, buf)
	}
}

// answer is a complete response.
func (b *badLine) answer(r *http.Request) string {
	body := "{}"
	switch {
	case strings.HasSuffix(r.URL.Path, "/attach"):
		return "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
	case strings.HasSuffix(r.URL.Path, "/info"):
		body = `{"ID": "x", "ServerVersion": "20.10"}`
	case strings.HasSuffix(r.URL.Path, "/json"):
		body = `{"Id": "id", "Name": "/a", "Config": {}, "State": {"Running": true, "StartedAt": "2026-11-21T09:00:00Z"}}`
	}
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

func (b *badLine) connect(t *testing.T) *Engine {
	t.Helper()
	dir, err := os.MkdirTemp("", "abl-bl") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	b.asked = make(chan struct{}, 1)
	s := &http.Server{Handler: b}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { s.Close(); os.RemoveAll(dir) })
	e, err := Connect(t.Context(), func(name string) string { return map[string]string{"DOCKER_HOST": "unix://" + socket}[name] })
	if err != nil {
		t.Fatal(err)
	}
	e.pause = time.Microsecond
	t.Cleanup(func() { e.Close() })
	return e
}

// uses are the calls that were not repeated before, each with the end of its path.
var uses = map[string]func(ctx context.Context, e *Engine) error{
	"/archive": func(ctx context.Context, e *Engine) error {
		return e.CopyIn(ctx, "a", "/to", copyOfEach(tarBytes("note", "brought")))
	},
	"/attach": func(ctx context.Context, e *Engine) error { return e.Feed(ctx, "a", []byte("brought")) },
	"/info": func(ctx context.Context, e *Engine) error {
		info, err := e.Info(ctx)
		if err == nil && info.ID != "x" {
			err = fmt.Errorf("info is %+v", info)
		}
		return err
	},
}

// tarBytes returns a tar archive with one file.
func tarBytes(name, content string) []byte {
	data, _ := io.ReadAll(tarOf(name, []byte(content)))
	return data
}

// copyOfEach writes data each time.
func copyOfEach(data []byte) func(io.Writer) error {
	return func(w io.Writer) error { return copyOf(bytes.NewReader(data))(w) }
}

// Copies, attaching and Info are repeated if a response is lost or invalid. The container gets the
// data once and complete.
func TestBadLine(t *testing.T) {
	for path, use := range uses {
		for _, fault := range []string{cutBefore, lost, halved, fallsApart} {
			t.Run(path[1:]+" "+fault, func(t *testing.T) {
				b := &badLine{path: path, fault: fault}
				if err := use(t.Context(), b.connect(t)); err != nil {
					t.Fatalf("got %v, want that it is asked for again", err)
				}
				if _, open := <-b.asked; open {
					t.Error("requests with the fault: got none, want one")
				}
			})
		}
	}
}

// A request without a response ends with its context.
func TestNeverAnswered(t *testing.T) {
	for path, use := range uses {
		t.Run(path[1:], func(t *testing.T) {
			b := &badLine{path: path, fault: noAnswer}
			e := b.connect(t)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- use(ctx, e) }()
			<-b.asked
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want %v", err, context.Canceled)
			}
		})
	}
}

// An error of tree is not an error of the engine and is not repeated.
func TestCopyInOfABrokenTree(t *testing.T) {
	e, calls, broken := (&badLine{path: "/none"}).connect(t), 0, errors.New("the disk is broken")
	err := e.CopyIn(t.Context(), "a", "/to", func(io.Writer) error { calls++; return broken })
	if !errors.Is(err, broken) || errors.Is(err, sandbox.ErrUnreachable) || calls != 1 {
		t.Errorf("got %v after %d calls, want %v after 1", err, calls, broken)
	}
}
