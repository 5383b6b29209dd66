package witness

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func answerOf(status, head, body string) string {
	return fmt.Sprintf("HTTP/1.1 %s\r\n%sContent-Length: %d\r\n\r\n%s", status, head, len(body), body)
}

const isJSON = "Content-Type: application/json\r\n"

// answers are responses with all features of HTTP/1.
func answers() map[string]string {
	big := `["` + strings.Repeat("x", 1<<20) + `"]`
	return map[string]string{
		"/":          answerOf("200 Fine", isJSON+"x-Odd:  spaces \r\n", `{"a": 1}`),
		"/text":      answerOf("200 OK", "", "hello"),
		"/empty":     "HTTP/1.1 204 No Content\r\n\r\n",
		"/missing":   answerOf("404 Not Found", isJSON, `{"a": 1}`),
		"/same":      "HTTP/1.1 304 Not Modified\r\nContent-Length: 50\r\n\r\n",
		"/chunks":    "HTTP/1.1 200 OK\r\n" + isJSON + "Transfer-Encoding: chunked\r\n\r\n3;x=y\r\n{\"a\r\n6\r\n\": [1]\r\n01\r\n}\r\n0\r\nTrail: er\r\n\r\n",
		"/none":      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"/big":       answerOf("200 OK", isJSON, big),
		"/bigchunks": "HTTP/1.1 200 OK\r\n" + isJSON + "Transfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n", len(big), big) + "0\r\n\r\n",
		"/lines":     "HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
		"/zip":       answerOf("200 OK", isJSON+"Content-Encoding: gzip\r\n", "\x1f\x8b"),
		"/echo":      answerOf("201 Created", "Location: /echo/1\r\n", "abc"),
		"/ws":        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nwelcome ",
		"":           "HTTP/1.1 200 Connected\r\n\r\n",
		"/no":        answerOf("426 Upgrade Required", "", ""),
		"/hints":     "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + answerOf("200 OK", "", "x"),
		"/api":       answerOf("200 OK", "Content-Type: application/vnd.x+json; charset=utf-8\r\n", "[1]"),
		"/docs":      answerOf("200 OK", "Content-Type: application/stream+json\r\n", "[1]"),
		"/close":     "HTTP/1.1 200 OK\r\n" + isJSON + "\r\n{\"a\": 1}",
		"/cut/close": "HTTP/1.1 200 OK\r\n" + isJSON + "Content-Length: 50\r\n\r\n{\"a\": 1}",
		"/bad/close": "HTTP/1.1 200 OK\r\n" + isJSON + "Transfer-Encoding: chunked\r\n\r\nzz\r\nrest",
		"/odd":       "HTP 200\r\n\r\nwhat",
		"/twice":     answerOf("200 OK", "", "x") + answerOf("408 Request Timeout", "", "y"),
		"/long":      "HTTP/1.1 200 OK\r\nA: " + strings.Repeat("b", 2*readAhead) + "\r\nContent-Length: 0\r\n\r\n",
		"/sse/close": "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n",
	}
}

func get(paths ...string) string {
	var b strings.Builder
	for _, p := range paths {
		fmt.Fprintf(&b, "GET %s HTTP/1.1\r\nHost: app\r\n\r\n", p)
	}
	return b.String()
}

// Data through the proxy is the same, byte by byte, as without it.
func TestUntouched(t *testing.T) {
	app := rawApp(t, answers())
	through := proxied(t, app)
	var all []string
	for path := range answers() {
		if path != "" { // of a tunnel
			all = append(all, path)
		}
	}
	slices.Sort(all)
	said := []string{
		get("/", "/text", "/empty", "/missing", "/same", "/chunks", "/lines", "/hints", "/"),
		"HEAD / HTTP/1.1\r\nHost: app\r\n\r\n",
		"POST /echo HTTP/1.1\r\nHost: app\r\nContent-Length: 3\r\n\r\nabc" + get("/"),
		"POST /echo HTTP/1.1\r\nHost: app\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n" + get("/"),
		"GET / HTTP/1.0\r\n\r\n",
		"GET /ws HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nGET / HTTP/1.1\r\n\r\n",
		"GET /no HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n" + get("/"),
		"GET /x/close HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\n\r\n",
		"GET /odd HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\n\r\n", "GET /long HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\n\r\nmore",
		"CONNECT app:1 HTTP/1.1\r\nHost: a\r\n\r\n\x00\x01",
		"\x16\x03\x01binary", "hello\nGET / HTTP/1.1\r\n\r\n", "get / HTTP/1.1\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "", "\r\n" + get("/"),
		"GET / HTTP/1.1\r\nbroken\r\n\r\n", "GET /" + strings.Repeat("a", 2*readAhead) + " HTTP/1.1\r\n\r\n",
		get("/") + "no more HTTP",
	}
	for _, path := range all {
		said = append(said, get(path))
	}
	for _, s := range said {
		if want, got := say(t, app, s), say(t, through, s); got != want {
			t.Errorf("response to %.60q: got %.300q, want %.300q", s, got, want)
		}
	}
}

// An app may send data before, or during, a request.
func TestServerFirst(t *testing.T) {
	app := start(t, func(ctx context.Context, l net.Listener) error {
		return Serve(ctx, l, func(_ context.Context, conn net.Conn) {
			_, _ = io.WriteString(conn, "220 ready\r\n")
			r := bufio.NewReader(conn)
			for {
				line, err := r.ReadString('\n')
				if err != nil {
					return
				}
				_, _ = io.WriteString(conn, "250 "+line)
			}
		})
	})
	at := proxied(t, app)
	conn, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r := bufio.NewReader(conn)
	for _, step := range []string{"", "EHLO me\r\n", "QUIT\r\n"} {
		want := "250 " + step
		if step == "" {
			want = "220 ready\r\n"
		} else if _, err := io.WriteString(conn, step); err != nil {
			t.Fatal(err)
		}
		if got, err := r.ReadString('\n'); got != want || err != nil {
			t.Fatalf("line after %q: got %q, error %v, want %q", step, got, err, want)
		}
	}
}

// An app that has closed its side can still receive data.
func TestHalfClosed(t *testing.T) {
	heard := make(chan string, 1)
	app := start(t, func(ctx context.Context, l net.Listener) error {
		return Serve(ctx, l, func(_ context.Context, conn net.Conn) {
			_, _ = io.WriteString(conn, "bye\n")
			closeWrite(conn)
			data, _ := io.ReadAll(conn)
			heard <- string(data)
		})
	})
	at := proxied(t, app)
	conn, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(conn); string(got) != "bye\n" || err != nil {
		t.Errorf("data from the app: got %q, error %v, want %q", got, err, "bye\n")
	}
	if _, err := io.WriteString(conn, "one more thing"); err != nil {
		t.Error(err)
	}
	conn.Close()
	if got := <-heard; got != "one more thing" {
		t.Errorf("data at the app: got %q, want one more thing", got)
	}
}

// The beginning of a response passes before its end is sent.
func TestStreams(t *testing.T) {
	more := make(chan bool)
	app := start(t, func(ctx context.Context, l net.Listener) error {
		return Serve(ctx, l, func(_ context.Context, conn net.Conn) {
			if _, err := readHead(bufio.NewReader(conn)); err != nil {
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\nbegin")
			<-more
			_, _ = io.WriteString(conn, "end")
		})
	})
	conn, err := net.Dial("tcp", proxied(t, app))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, get("/")); err != nil {
		t.Fatal(err)
	}
	const begin = "HTTP/1.1 200 OK\r\n\r\nbegin"
	first := make([]byte, len(begin))
	if _, err := io.ReadFull(conn, first); err != nil || string(first) != begin {
		t.Fatalf("begin of the response: got %q, error %v, want %q", first, err, begin)
	}
	more <- true
	if rest, err := io.ReadAll(conn); string(rest) != "end" || err != nil {
		t.Errorf("rest of the response: got %q, error %v, want end", rest, err)
	}
}

// Without an app the proxy resets the connection.
func TestNoApp(t *testing.T) {
	conn, err := net.Dial("tcp", proxied(t, "127.0.0.1:1"))
	if err == nil {
		defer conn.Close()
		_, err = conn.Read(make([]byte, 1))
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got %v, want a reset connection", err)
	}
}

// The record has each request once, with its response or its failure.
func TestSeen(t *testing.T) {
	app := rawApp(t, answers())
	big := `["` + strings.Repeat("x", 1<<20) + `"]`
	for _, c := range []struct{ name, said, want string }{
		{"bytes alone", "hello\nmore", "hello more 0 more"},
		{"bytes alone, of HTTP", get("/text"), "GET /text HTTP/1.1 Host: app 0 HTTP/1.1 200 OK Content-Length: 5 hello"},
		{"one after the other", get("/", "/text", "/missing"), "GET / 200 {\"a\": 1}; GET /text 200 hello; GET /missing 404 {\"a\": 1}"},
		{"chunks", get("/chunks"), `GET /chunks 200 {"a": [1]}`},
		{"a body each way", "POST /echo HTTP/1.1\r\nHost: app\r\nContent-Length: 3\r\n\r\nxyz", "POST /echo xyz 201 abc"},
		{"a body in chunks", "POST /echo HTTP/1.1\r\nHost: app\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n2\r\nyz\r\n0\r\n\r\n", "POST /echo xyz 201 abc"},
		{"a long one", get("/bigchunks"), fmt.Sprintf("GET /bigchunks 200 %d bytes, %x", len(big), sha256.Sum256([]byte(big)))},
		{"up to the end", get("/close"), `GET /close 200 {"a": 1}`},
		{"cut", get("/cut/close"), `GET /cut/close 200 {"a": 1}`},
		{"another protocol", "GET /ws HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nhi", "GET /ws hi 101 welcome hi"},
		{"no answer", get("/nothing"), "GET /nothing 0"},
		{"an invalid response", get("/odd"), "GET /odd 0 HTP 200 what"},
		{"no HTTP", "hello\nmore", "hello more 0 more"},
		{"nothing", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			seen := make(chan Exchange, 9)
			p := Proxy{To: app, Seen: func(x Exchange) { seen <- x }, Bytes: strings.HasPrefix(c.name, "bytes")}
			ctx, cancel := context.WithCancel(t.Context())
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			over := make(chan error)
			go func() { over <- p.Serve(ctx, l) }()
			say(t, l.Addr().String(), c.said)
			cancel()
			<-over
			close(seen)
			var all []string
			for x := range seen {
				all = append(all, record(x))
			}
			if got := strings.Join(all, "; "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func record(x Exchange) string {
	body := func(b Body) string {
		if b.Bytes > int64(len(b.Begins)) {
			return fmt.Sprintf("%d bytes, %s", b.Bytes, b.SHA256)
		}
		return string(b.Begins)
	}
	return strings.Join(strings.Fields(fmt.Sprintf("%s %s %s %d %s", x.Method, x.Target, body(x.Sent), x.Status, body(x.Got))), " ")
}

// Data that an app sends before a request passes unchanged, with all that follows, and counts as
// the response to no request. Interim responses do not count as responses.
func TestAnswersAhead(t *testing.T) {
	const rest = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi"
	for _, c := range []struct {
		ahead, rest string
		status      int
	}{
		{"Hello", "", 0}, {"", rest, 200}, {"H", rest[1:], 0}, {"HTTP/1.1 ", rest[9:], 0}, {rest, "", 0},
		{"", "HTTP/1.1 103 Early Hints\r\n\r\n", 0}, {"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 ", rest[9:], 0},
	} {
		app := start(t, func(ctx context.Context, l net.Listener) error {
			return Serve(ctx, l, func(_ context.Context, conn net.Conn) {
				_, _ = io.WriteString(conn, c.ahead)
				if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
					_, _ = io.WriteString(conn, c.rest)
				}
			})
		})
		seen := make(chan Exchange, 9)
		conn, err := net.Dial("tcp", start(t, (&Proxy{To: app, Seen: func(x Exchange) { seen <- x }}).Serve))
		if err != nil {
			t.Fatal(err)
		}
		// The request follows the words that the app sent ahead.
		ahead := make([]byte, len(c.ahead))
		if _, err := io.ReadFull(conn, ahead); err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, get("/x"))
		after, _ := io.ReadAll(conn)
		conn.Close()
		got := append(ahead, after...)
		x := <-seen
		if x.Method == "" { // what the app said first
			x = <-seen
		}
		if string(got) != c.ahead+c.rest || x.Method != "GET" || x.Status != c.status {
			t.Errorf("%q ahead: got %q, record %q with %d, want %q, GET with %d",
				c.ahead, got, x.Request(), x.Status, c.ahead+c.rest, c.status)
		}
	}
}

// Data that an app sends without a request passes unchanged, and so does its end.
func TestAppClosesIdleConnection(t *testing.T) {
	for _, said := range []string{answerOf("408 Request Timeout", "", "late"), "HTT", "\r\n", "Hi"} {
		app := start(t, func(ctx context.Context, l net.Listener) error {
			return Serve(ctx, l, func(_ context.Context, conn net.Conn) { _, _ = io.WriteString(conn, said) })
		})
		conn, err := net.Dial("tcp", proxied(t, app))
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		if got, err := io.ReadAll(conn); err != nil || string(got) != said {
			t.Errorf("got %q, %v, want %q", got, err, said)
		}
		conn.Close()
	}
}

// The record says whether the client or the app closed the connection before the end of a response,
// and has the status that the client got.
func TestWhichSideLeft(t *testing.T) {
	const refusal = "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 5000000\r\n\r\n"
	untilClosed := func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }
	for _, c := range []struct {
		name   string
		app    func(conn net.Conn)
		leaves string // the client closes when it has got this
		left   bool
		status int
	}{
		{"the client", untilClosed, "", true, 0},
		{"the app", func(net.Conn) {}, refusal, false, 0},
		{"the client, before the response", func(conn net.Conn) {
			untilClosed(conn)
			_, _ = io.WriteString(conn, refusal+strings.Repeat("x", 5_000_000))
		}, "", true, 0},
		{"the client, after the status", func(conn net.Conn) {
			_, _ = io.WriteString(conn, refusal)
			untilClosed(conn)
			_, _ = io.WriteString(conn, strings.Repeat("x", 5_000_000))
		}, refusal, true, 500},
	} {
		t.Run(c.name, func(t *testing.T) {
			heard, seen := make(chan struct{}), make(chan Exchange, 1)
			app := start(t, func(ctx context.Context, l net.Listener) error {
				return Serve(ctx, l, func(_ context.Context, conn net.Conn) {
					if _, err := readHead(bufio.NewReader(conn)); err == nil {
						close(heard)
						c.app(conn)
					}
				})
			})
			conn, err := net.Dial("tcp", start(t, (&Proxy{To: app, Seen: func(x Exchange) { seen <- x }}).Serve))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, get("/"))
			<-heard
			_, _ = io.ReadFull(conn, make([]byte, len(c.leaves)))
			conn.Close()
			if x := <-seen; x.Left != c.left || x.Status != c.status || x.Target != "/" {
				t.Errorf("got left %v of %+v, want %v with status %d", x.Left, x, c.left, c.status)
			}
		})
	}
}
