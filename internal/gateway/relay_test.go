package gateway

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// counting counts the writes to its connections.
type counting struct {
	net.Listener
	writes atomic.Int64
}

func (l *counting) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return &countingConn{c, l}, err
}

type countingConn struct {
	net.Conn
	of *counting
}

func (c *countingConn) Write(p []byte) (int, error) {
	c.of.writes.Add(1)
	return c.Conn.Write(p)
}

// inPieces is a body whose reads return pieces of a fixed size.
type inPieces struct {
	sizes []int
	ended bool // the last read returns io.EOF with the piece
}

func (b *inPieces) Read(p []byte) (int, error) {
	if len(b.sizes) == 0 {
		return 0, io.EOF
	}
	n := copy(p, bytes.Repeat([]byte("x"), b.sizes[0]))
	if b.sizes = b.sizes[1:]; b.ended && len(b.sizes) == 0 {
		return n, io.EOF
	}
	return n, nil
}

func (*inPieces) Close() error { return nil }

// A response of pings causes log lines, so that abl does not take the call for idle.
func TestPingsAreLogged(t *testing.T) {
	enough := make(chan struct{})
	model := serve(t, func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for tick := time.Tick(time.Millisecond); ; {
			io.WriteString(w, "event: ping\ndata: {\"type\": \"ping\"}\n\n")
			flush(w)
			select {
			case <-enough:
				return
			case <-q.Context().Done():
				return
			case <-tick:
			}
		}
	})
	s := setup(model.URL)
	s.Limits.IdleMS = 60_000 / aliveShare
	r := start(t, s)
	done := make(chan reply, 1)
	go func() { done <- r.post("/anthropic/v1/messages", modelled) }()
	r.next(Began)
	for range 2 {
		r.next(Alive)
	}
	close(enough)
	<-done
	r.next(Requested)
}

type answers func(*http.Request) *http.Response

func (f answers) RoundTrip(q *http.Request) (*http.Response, error) { return f(q), nil }

// The headers of a response are one write to the socket, and so is each piece. If the last piece is
// known to be the last, it is one write with the end of the response.
func TestPieceIsOneWrite(t *testing.T) {
	ending := strings.Repeat("x", 100) + "0\r\n"
	for _, c := range []struct {
		name   string
		length int64
		body   io.ReadCloser
		bytes  int
		writes int64
	}{
		{"a separate end", -1, &inPieces{sizes: []int{pieceSize, 1, 2500, pieceSize}}, 2*pieceSize + 2501, 6},
		{"the end comes with the last", -1, &inPieces{sizes: []int{pieceSize, 1, 2500, pieceSize}, ended: true}, 2*pieceSize + 2501, 5},
		{"one small piece", -1, &inPieces{sizes: []int{1}, ended: true}, 1, 2},
		{"with its length", 2500, &inPieces{sizes: []int{2500}, ended: true}, 2500, 2},
		{"it looks like an end", -1, &atOnce{text: ending}, len(ending), 2},
		{"nothing", -1, &inPieces{}, 0, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, writes := answered(t, &http.Response{StatusCode: http.StatusOK, ContentLength: c.length, Body: c.body})
			if got != c.bytes || writes != c.writes {
				t.Errorf("response: got %d bytes in %d writes, want %d in %d", got, writes, c.bytes, c.writes)
			}
		})
	}
}

// atOnce is a body that one read returns, with io.EOF.
type atOnce struct{ text string }

func (b *atOnce) Read(p []byte) (int, error) { return copy(p, b.text), io.EOF }
func (*atOnce) Close() error                 { return nil }

// answered returns the bytes and the writes with which a gateway relays a provider's response.
func answered(t *testing.T, answer *http.Response) (bytes int, writes int64) {
	t.Helper()
	inner, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	order := setup("http://127.0.0.1:1")
	order.Limits = defaults
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	g, err := Process{Out: io.Discard}.begin(ctx, order)
	if err != nil {
		t.Fatal(err)
	}
	g.transport = answers(func(*http.Request) *http.Response { return answer })
	count, input, served := &counting{Listener: inner}, make(chan []byte), make(chan error, 1)
	go func() { served <- g.serve(ctx, count, input) }()
	q, err := http.NewRequest(http.MethodPost, "http://"+inner.Addr().String()+"/"+callID+gen, strings.NewReader(shortBody))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("X-Goog-Api-Key", callTok)
	resp, err := client.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
	return len(got), count.writes.Load()
}

// A client that never reads does not keep its request longer than the time limit of a piece.
func TestClientThatDoesNotRead(t *testing.T) {
	u := serve(t, func(w http.ResponseWriter, q *http.Request) {
		for q.Context().Err() == nil {
			if _, err := io.WriteString(w, event); err != nil {
				return
			}
		}
	})
	order := setup(u.URL)
	order.Limits.WriteMS = 100
	r := start(t, order)
	c := dial(t, r.addr)
	io.WriteString(c, raw(gen))
	if e := r.next(Requested); !e.Req.Cut || !e.Req.Aborted || e.Reason != "the client left" {
		t.Errorf("log: got %+v, %+v, want a cut and aborted request because the client left", e, e.Req)
	}
}

// A response whose end comes long after its last piece is complete.
func TestEndAfterAPause(t *testing.T) {
	u := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, event)
		flush(w)
		time.Sleep(100 * time.Millisecond) // longer than WriteMS: the duration is tested
	})
	order := setup(u.URL)
	order.Limits.WriteMS = 20
	if got := start(t, order).post(gen, shortBody); got.err != nil || got.body != event {
		t.Errorf("got %+v, want the body %q", got, event)
	}
}
