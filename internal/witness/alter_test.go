package witness

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestAlter(t *testing.T) {
	app := rawApp(t, answers())
	claim := func(contract string) Claim {
		action, result, _ := strings.Cut(contract, " → ")
		c, ok := ReadClaim("", action, result)
		if !ok {
			t.Fatalf("claim of %s: got none, want one", contract)
		}
		return c
	}
	chunks := func(status, chunks string) string {
		return "HTTP/1.1 " + status + "\r\n" + isJSON + "Transfer-Encoding: chunked\r\n\r\n" + chunks + "\r\n"
	}
	for _, c := range []struct {
		contract, said string
		status, named  string // "" is as it was
	}{
		{`GET / → 200 {"a": 1}`, get("/"), "HTTP/1.1 500 Internal Server Error\r\nContent-Type: application/json\r\nx-Odd:  spaces \r\nContent-Length: 8\r\n\r\n{\"a\": 1}", "HTTP/1.1 200 Fine\r\nContent-Type: application/json\r\nx-Odd:  spaces \r\nContent-Length: 2\r\n\r\n{}"},
		{"GET /text → 200", get("/text"), answerOf("500 Internal Server Error", "", "hello"), ""},
		{`GET /text → 200 "hello"`, get("/text"), answerOf("500 Internal Server Error", "", "hello"), answerOf("200 OK", "", "")},
		{"GET /missing → 404", get("/missing"), answerOf("200 OK", isJSON, `{"a": 1}`), ""},
		{"GET /chunks → 200 {a}", get("/chunks"), chunks("500 Internal Server Error", "3;x=y\r\n{\"a\r\n6\r\n\": [1]\r\n01\r\n}\r\n0\r\nTrail: er\r\n"), chunks("200 OK", "2\r\n{}\r\n0\r\n")},
		{"POST /echo → 201 with header Location: /echo/1", "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", answerOf("500 Internal Server Error", "Location: /echo/1\r\n", "abc"), answerOf("201 Created", "", "abc")},
		{"HEAD /empty → 204", "HEAD /empty HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 500 Internal Server Error\r\n\r\n", ""},
		{"GET /empty → 204", get("/empty"), answerOf("500 Internal Server Error", "", ""), ""},
		{"GET /big → 200", get("/big"), "", ""}, // too long
		{"GET /bigchunks → 200", get("/bigchunks"), "", ""},
		{"GET /sse/close → 200", get("/sse/close"), "", ""}, // a stream
		{"GET /text → 200 or 500", get("/text"), "", ""},    // it would fit again
		{"GET /missing → 404 or 200", get("/missing"), "", ""},
		{`GET /text → the text "hello"`, get("/text"), "", answerOf("200 OK", "", "")}, // it names no status
		{"GET /chunks → {a}", get("/chunks"), "", chunks("200 OK", "2\r\n{}\r\n0\r\n")},
		{"GET /zip → 200 {a}", get("/zip"), answerOf("500 Internal Server Error", isJSON+"Content-Encoding: gzip\r\n", "\x1f\x8b"), ""}, // nothing can be taken out
		{"GET /text → 201", get("/text"), "", ""},                                                                                       // it does not fit
		{"GET /text → 200", get("/", "/"), "", ""},                                                                                      // another request
		{`GET /close → 200 {"a": 1}`, get("/close"), "HTTP/1.1 500 Internal Server Error\r\n" + isJSON + "\r\n{\"a\": 1}", "HTTP/1.1 200 OK\r\n" + isJSON + "\r\n{}"},
	} {
		t.Run(rowName(c.contract), func(t *testing.T) {
			for what, want := range map[Alteration]string{OfStatus: c.status, OfNamed: c.named} {
				seen, altered := make(chan Exchange, 2), want != ""
				p := Proxy{To: app, Seen: func(x Exchange) { seen <- x }, Altering: &Altering{[]Altered{{claim(c.contract), what}}}}
				if want == "" {
					want = say(t, app, c.said)
				}
				if got := say(t, start(t, p.Serve), c.said); got != want {
					t.Errorf("%s: got %.300q, want %.300q", what, got, want)
				}
				if x := <-seen; x.Altered != altered || altered && !claim(c.contract).Fits(x) {
					t.Errorf("%s: got record %+v, want the response of the app, altered %t", what, x, altered)
				}
			}
		})
	}
}

// The app is asked only for encodings that abl can decode. The rest of the request is unchanged.
func TestAcceptEncoding(t *testing.T) {
	app := start(t, func(ctx context.Context, l net.Listener) error {
		return Serve(ctx, l, func(_ context.Context, conn net.Conn) {
			head, _ := readHead(bufio.NewReader(conn))
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n"+string(head))
		})
	})
	for asked, want := range map[string]string{
		"accept-encoding: gzip":                        "accept-encoding: gzip",
		"Accept-Encoding: gzip, deflate, br, zstd":     "Accept-Encoding: gzip",
		"Accept-Encoding: br;q=1.0, gzip;q=0.5, *;q=0": "Accept-Encoding: gzip;q=0.5",
		"Accept-Encoding: br":                          "Accept-Encoding: identity",
		"Accept-Encoding: *":                           "Accept-Encoding: identity",
		"Accept-Encoding:":                             "Accept-Encoding:",
		"X-Accept-Encoding: br":                        "X-Accept-Encoding: br",
	} {
		t.Run(rowName(asked), func(t *testing.T) {
			const head, tail = "GET / HTTP/1.1\r\nHost: a\r\n", "\r\nX: y\r\n\r\n"
			if got, want := say(t, proxied(t, app), head+asked+tail), "HTTP/1.1 200 OK\r\n\r\n"+head+want+tail; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// abl alters a compressed response inside and compresses it again.
func TestAlterCompressedResponse(t *testing.T) {
	claim, _ := ReadClaim("", "GET /", `200 {"a": 1}`)
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(gzipped([]byte(`{"a": 1, "b": 2}`)))
	}))
	defer app.Close()
	seen := make(chan Exchange, 1)
	p := Proxy{To: app.Listener.Addr().String(), Seen: func(x Exchange) { seen <- x }, Altering: &Altering{[]Altered{{claim, OfNamed}}}}
	q, err := http.NewRequest(http.MethodGet, "http://"+start(t, p.Serve)+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Transport{}).RoundTrip(q) // unpacks what it asked for itself
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != `{"b":2}` || !resp.Uncompressed {
		t.Errorf("got %q, packed %v, %v, want the field a taken out of a packed body", body, resp.Uncompressed, err)
	}
	if x := <-seen; !x.Altered || !claim.Fits(x) {
		t.Errorf("record: got %+v, want the response of the app, altered", x)
	}
}

// A response that is not altered passes without delay, also in replays that alter others.
func TestUnalteredResponseIsNotDelayed(t *testing.T) {
	claim, _ := ReadClaim("", "GET /other", `200 {"a": 1}`)
	more := make(chan struct{})
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "first")
		_ = http.NewResponseController(w).Flush()
		<-more
	}))
	defer app.Close()
	p := Proxy{To: app.Listener.Addr().String(), Seen: func(Exchange) {}, Altering: &Altering{[]Altered{{claim, OfNamed}}}}
	resp, err := http.Get("http://" + start(t, p.Serve) + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	first := make([]byte, len("first"))
	if _, err := io.ReadFull(resp.Body, first); err != nil {
		t.Error(err)
	}
	close(more)
}

// The memory for long concurrent responses is limited. Further ones pass unchanged.
func TestBufferIsLimited(t *testing.T) {
	const answers = 40
	half, end := []byte(strings.Repeat("x", maxAltered/2)), make(chan struct{})
	app := start(t, func(ctx context.Context, l net.Listener) error {
		return Serve(ctx, l, func(_ context.Context, c net.Conn) {
			if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
				return
			}
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
			_, _ = c.Write(half)
			<-end
			_, _ = c.Write(half[1000:])
		})
	})
	claim, _ := ReadClaim("", "GET /", "200")
	p := Proxy{To: app, Seen: func(Exchange) {}, Altering: &Altering{[]Altered{{claim, OfStatus}}}}
	at := start(t, p.Serve)
	var clients sync.WaitGroup
	for range answers {
		clients.Go(func() {
			if got := len(say(t, at, get("/"))); got < maxAltered-1000 {
				t.Errorf("response: got %d bytes, want at least %d", got, maxAltered-1000)
			}
		})
	}
	until := func(what string, is func(kept int64) bool) {
		for deadline := time.Now().Add(time.Minute); !is(p.kept.Load()); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("buffered bytes %s: got %d, want more than %d of the first halves and 0 in the end",
					what, p.kept.Load(), maxKept)
			}
		}
	}
	until("of the first halves", func(kept int64) bool { return kept > maxKept })
	if kept := p.kept.Load(); kept > maxKept+answers*(32<<10) {
		t.Errorf("buffered bytes: got %d, want at most %d", kept, maxKept+answers*(32<<10))
	}
	close(end)
	clients.Wait()
	until("in the end", func(kept int64) bool { return kept == 0 })
}
