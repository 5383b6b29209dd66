package witness

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
)

// The proxy passes every response on byte by byte.
func FuzzAnswer(f *testing.F) {
	for path, a := range answers() {
		if len(a) < 1000 {
			f.Add("GET "+path+" HTTP/1.1\r\nHost: a\r\n\r\n", a)
		}
	}
	f.Add("HEAD / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n")
	f.Add("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz", "HTTP/1.1 100 Continue\r\n\r\n")
	f.Add("x", "y")
	f.Add("GET / HTTP/1.1\r\nUpgrade: x\r\n\r\n", "what")
	talk := make(chan [2]string, 1)
	app := start(f, func(ctx context.Context, l net.Listener) error {
		return Serve(ctx, l, func(_ context.Context, conn net.Conn) {
			what := <-talk
			if _, err := io.ReadFull(conn, make([]byte, len(what[0]))); err != nil {
				return
			}
			_, _ = io.WriteString(conn, what[1])
			closeWrite(conn)
			_, _ = io.Copy(io.Discard, conn)
		})
	})
	through := proxied(f, app)
	f.Fuzz(func(t *testing.T, request, answer string) {
		if len(request) == 0 {
			return
		}
		talk <- [2]string{request, answer}
		if got := say(t, through, request); got != answer {
			t.Errorf("response to %q: got %q, want %q", request, got, answer)
		}
	})
}

// Every contract and response can be read. An altered response does not fit the claim.
func FuzzClaim(f *testing.F) {
	f.Add("GET /a?q=1", `200 {"a": [1, {b}, …], "c": "x"}`, `{"a": [1], "c": "x"}`)
	f.Add("POST /notes {text}", `201 with header Location: /notes/ID and the text "ok", never "no"`, "ok")
	f.Add("GET /<any id>/…", "either 200 [] or 404", "[]")
	f.Fuzz(func(t *testing.T, action, result, body string) {
		c, ok := ReadClaim("", action, result)
		if !ok {
			return
		}
		for _, s := range append(c.statuses, span{200, 200}) {
			status := s.low
			x := Exchange{Method: c.requests[0].methods[0], Target: c.requests[0].path, Status: status, Header: http.Header{}, Got: Body{Bytes: int64(len(body)), Begins: []byte(body)}}
			for _, h := range c.headers {
				x.Header.Set(h.name, h.value.text)
			}
			if c.Misses(x) != "" || len(c.statuses) > 1 || len(body) > keepBody {
				continue
			}
			if x.Status = alteredStatus(status); len(c.statuses) > 0 && c.Misses(x) == "" {
				t.Errorf("altered status %d: got one that fits %+v, want one that does not", x.Status, c)
			}
		}
	})
}
