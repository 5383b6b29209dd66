package witness

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"abl/internal/broker"
	"abl/internal/helper"
)

// start serves on a port of the loopback interface until the test ends. It returns the address.
func start(t testing.TB, serves func(context.Context, net.Listener) error) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- serves(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("end of the server: got error %v, want none", err)
		}
	})
	return l.Addr().String()
}

// say sends bytes over a connection and returns the reply.
func say(t testing.TB, at, what string) string {
	t.Helper()
	conn, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go func() {
		_, _ = io.WriteString(conn, what)
		closeWrite(conn)
	}()
	got, _ := io.ReadAll(conn) // a reset ends it too
	return string(got)
}

// A server behind a socket responds the same, and the kernel lists its socket like an app's.
func TestBehind(t *testing.T) {
	dir := t.TempDir()
	through := func(name string, serve func(context.Context, net.Listener) error) string {
		return start(t, func(ctx context.Context, l net.Listener) error {
			return serve(ctx, Behind(ctx, l, filepath.Join(dir, name)))
		})
	}
	answers := func(ctx context.Context, l net.Listener) error { return Null(ctx, l, 200) }
	null, listed := through("null", answers), through("app", answers)
	line := through("line", func(ctx context.Context, l net.Listener) error { return SendLine(ctx, l, "hello\n") })
	refused := through("broker", func(ctx context.Context, l net.Listener) error { return Commands(ctx, l, "") })
	const request = "POST " + RunTarget + " HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"
	for _, c := range []struct{ at, what, want string }{
		{null, request + request, emptyOK + emptyOK},
		{null, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n" + strings.Repeat("x", 1_000_000), emptyOK},
		{line, "anything", "hello\n"},
	} {
		if got := say(t, c.at, c.what); got != c.want {
			t.Errorf("response to %.40q: got %q, want %q", c.what, got, c.want)
		}
	}
	conn, err := net.Dial("tcp", refused)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, request)
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("end of a run without a response: got %v, want %v", err, syscall.ECONNRESET)
	}
	if conn, err = net.Dial("tcp", listed); err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if _, err := io.ReadFull(conn, make([]byte, len(emptyOK))); err != nil {
		t.Fatal(err)
	}
	if list, err := os.ReadFile("/proc/net/unix"); err == nil && strings.Count(string(list), dir+"/app\n") != 1 {
		t.Errorf("sockets with one connection: got %s, want one %s/app", list, dir)
	}
}

const emptyOK = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

func TestNull(t *testing.T) {
	ok := start(t, func(ctx context.Context, l net.Listener) error { return Null(ctx, l, 200) })
	trouble := start(t, func(ctx context.Context, l net.Listener) error { return Null(ctx, l, 500) })
	for _, c := range []struct{ name, what, want string }{
		{"a-request", "GET / HTTP/1.1\r\nHost: app\r\n\r\n", emptyOK},
		{"of-any-method", "BREW /pot?x=1 HTTP/1.1\nHost: app\n\n", emptyOK},
		{"two-one-with-a-body", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcHEAD / HTTP/1.1\r\nHost: a\r\n\r\n", emptyOK + emptyOK},
		{"a-body-in-chunks", "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nGET / HTTP/1.0\r\n\r\nGET / HTTP/1.0\r\n\r\n", emptyOK + emptyOK},
		{"one-that-asks-first", "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\na", "HTTP/1.1 100 Continue\r\n\r\n" + emptyOK},
		{"a-broken-one", "GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n", ""},
		{"something-else", "hello\n", ""},
		{"nothing", "", ""},
		{"a-head-without-end", "GET / HTTP/1.1\r\n" + strings.Repeat("A: b\r\n", maxHead/6) + "\r\n", ""},
		{"a-line-without-end", "GET /" + strings.Repeat("a", 2*readAhead), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := say(t, ok, c.what); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			want := strings.ReplaceAll(c.want, "200 OK", "500 Internal Server Error")
			if got := say(t, trouble, c.what); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	resp, err := http.Post("http://"+ok, "text/plain", io.LimitReader(zeroes{}, 20<<20))
	if err != nil || resp.StatusCode != 200 || resp.ContentLength != 0 {
		t.Errorf("response to a large body: got %v, error %v, want an empty 200", resp, err)
	}
}

type zeroes struct{}

func (zeroes) Read(p []byte) (int, error) { return len(p), nil }

func TestCommands(t *testing.T) {
	at := start(t, func(ctx context.Context, l net.Listener) error {
		return Commands(ctx, l, `{"exit":1,"stderr":"ZXJyb3IK"}`)
	})
	c := broker.Client{URL: "http://" + at, Token: "any"}
	reply, err := c.Run(t.Context(), "seed", strings.NewReader(strings.Repeat("x", 1<<20)))
	if err != nil || reply.Exit != 0 || reply.Output != "" || reply.Error != "" {
		t.Errorf("command: got %+v, error %v, want exit code 0 without output", reply, err)
	}
	open, shut := io.Pipe()
	defer shut.Close()
	if reply, err = c.Run(t.Context(), "seed", open); err != nil || reply.Exit != 0 {
		t.Errorf("command with an open input: got %+v, error %v, want exit code 0", reply, err)
	}
	if reply, err = c.Restart(t.Context()); err != nil || reply.Exit != 0 {
		t.Errorf("restart: got %+v, error %v, want exit code 0", reply, err)
	}
	large := helper.AppRun{Args: [][]byte{[]byte("x")}, Files: map[string][]byte{"f": make([]byte, 8<<20)}}
	if ran, err := c.RunApp(t.Context(), large, open); err != nil || ran.Exit != 1 || string(ran.Stderr) != "error\n" || ran.Error != "" {
		t.Errorf("run of the app: got %+v, error %v, want exit code 1 with error on stderr", ran, err)
	}
	c.URL = "http://" + start(t, func(ctx context.Context, l net.Listener) error { return Commands(ctx, l, "") })
	if reply, err = c.Run(t.Context(), "seed", nil); err != nil || reply.Exit != 0 {
		t.Errorf("command without an app: got %+v, error %v, want exit code 0", reply, err)
	}
	if ran, err := c.RunApp(t.Context(), large, strings.NewReader("in")); err == nil {
		t.Errorf("run without an app: got %+v, want an error", ran)
	}
}

// At its end Serve closes all connections. A waiting connection does not delay it.
func TestEnd(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- Null(ctx, l, 200) }()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := readHead(r); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := r.ReadByte(); err == nil {
		t.Error("read after the end: got no error, want one")
	}
	l.Close()
	if err := Null(t.Context(), l, 200); err == nil {
		t.Error("Null on a closed listener: got no error, want one")
	}
}
