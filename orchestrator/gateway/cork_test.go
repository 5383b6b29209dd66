package gateway

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
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

// inPieces is a body of which each read gives a piece of so many bytes.
type inPieces struct{ sizes []int }

func (b *inPieces) Read(p []byte) (int, error) {
	if len(b.sizes) == 0 {
		return 0, io.EOF
	}
	n := copy(p, bytes.Repeat([]byte("x"), b.sizes[0]))
	b.sizes = b.sizes[1:]
	return n, nil
}

func (*inPieces) Close() error { return nil }

type answers func(*http.Request) *http.Response

func (f answers) RoundTrip(q *http.Request) (*http.Response, error) { return f(q), nil }

// However large a piece of an answer is, it is one write to the socket: the first
// takes the headers along, and one more ends the answer.
func TestPieceIsOneWrite(t *testing.T) {
	inner, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g, err := Process{Out: io.Discard}.begin(t.Context(), setup("http://127.0.0.1:1"))
	if err != nil {
		t.Fatal(err)
	}
	g.transport = answers(func(*http.Request) *http.Response {
		return &http.Response{StatusCode: http.StatusOK, ContentLength: -1, Body: &inPieces{[]int{pieceSize, 1, 5000, pieceSize}}}
	})
	count, input, served := &counting{Listener: inner}, make(chan []byte), make(chan error, 1)
	go func() { served <- g.serve(count, input) }()
	q, err := http.NewRequest(http.MethodPost, "http://"+inner.Addr().String()+"/"+callID+gen, strings.NewReader(someBody))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("X-Goog-Api-Key", callTok)
	resp, err := client.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, err := io.ReadAll(resp.Body); err != nil || len(got) != 2*pieceSize+5001 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	input <- []byte(`{"stop":true}`)
	if err := <-served; err != nil {
		t.Error(err)
	}
	if writes := count.writes.Load(); writes != 5 {
		t.Errorf("%d writes, want 5", writes)
	}
}

// A client that does not read makes a piece fail, and nothing of it is kept for the next.
func TestUncorkTellsAFailure(t *testing.T) {
	near, far := net.Pipe()
	far.Close()
	c := &conn{Conn: near, from: &listener{}}
	c.cork()
	if _, err := c.Write([]byte("piece")); err != nil {
		t.Errorf("while it gathers: %v", err)
	}
	if err := c.uncork(); err == nil {
		t.Error("the loss of a piece is not told")
	}
	if c.corked != nil {
		t.Error("it still gathers")
	}
	if err := (*conn)(nil).uncork(); err != nil {
		t.Error(err)
	}
}
