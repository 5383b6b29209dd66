package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
)

func dial(t testing.TB, addr string) net.Conn {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// raw returns a valid request as bytes.
func raw(path string) string {
	return fmt.Sprintf("POST /%s%s HTTP/1.1\r\nHost: g\r\nX-Goog-Api-Key: %s\r\nContent-Length: %d\r\n\r\n%s", callID, path, callTok, len(shortBody), shortBody)
}

func readSome(t testing.TB, c net.Conn) string {
	t.Helper()
	b := make([]byte, 4096)
	n, err := c.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(b[:n])
}

// TestAttacks sends requests that no client sends. Each is refused, logged with the reason unless
// net/http cannot read it, and not sent to the provider, and the connection is closed.
func TestAttacks(t *testing.T) {
	u := serve(t, say(http.StatusOK, "application/json", "{}"))
	s := setup(u.URL)
	s.Limits.Body = 1000
	r := start(t, s)
	token := "X-Goog-Api-Key: " + callTok + "\r\n"
	head := "POST /" + callID + gen + " HTTP/1.1\r\nHost: g\r\n" + token
	tests := []struct{ name, send, status, reason string }{
		{"CL and TE", head + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nPOST /x HTTP/1.1\r\n\r\n", "411", "chunked"},
		{"TE in two spellings", head + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n", "501", ""},
		{"TE obfuscated", head + "Transfer-Encoding: xchunked\r\nContent-Length: 3\r\n\r\n{}\n", "501", ""},
		{"two lengths", head + "Content-Length: 2\r\nContent-Length: 40\r\n\r\n{}", "400", ""},
		{"a negative length", head + "Content-Length: -1\r\n\r\n{}", "400", ""},
		{"a space in a header's name", head + "Content-Length : 2\r\n\r\n{}", "400", ""},
		{"two hosts", head + "Host: other\r\nContent-Length: 2\r\n\r\n{}", "400", ""},
		{"no host", "POST / HTTP/1.1\r\n\r\n", "400", ""},
		{"garbage", "\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", "400", ""},
		{"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "", "token"},
		{"20,000 headers", head + strings.Repeat("A: b\r\n", 20_000) + "\r\n", "431", ""},
		{"a header of 1 MB", head + "A: " + strings.Repeat("b", 1<<20) + "\r\n\r\n", "431", ""},
		{"10 GB", head + "Content-Length: 10000000000\r\n\r\n", "413", "allows at most 1000"},
		{"absolute form", "POST http://evil.example/" + callID + gen + " HTTP/1.1\r\nHost: evil.example\r\n" + token + "\r\n", "404", "does not begin with this call"},
		{"another method", strings.Replace(head, "POST", "DELETE", 1) + "\r\n", "404", "is not allowed"},
		{"a long method", strings.Replace(head, "POST", strings.Repeat("M", 5000), 1) + "\r\n", "404", "is not allowed"},
		{"CONNECT", "CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n", "407", "token"},
		{"CONNECT with the token", "CONNECT 169.254.169.254:80 HTTP/1.1\r\nHost: 169.254.169.254:80\r\nProxy-Authorization: Bearer " + callTok + "\r\n\r\n", "403", "169.254.169.254:80 is not in network.allow"},
		{"TRACE", "TRACE /" + callID + gen + " HTTP/1.1\r\nHost: g\r\n" + token + "\r\n", "404", "is not allowed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r.under(t)
			c := dial(t, r.addr)
			go io.WriteString(c, tt.send) // data that the gateway does not read is no error
			answer, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				if tt.status != "" {
					t.Error(err)
				}
			} else if !answer.Close || tt.status != "" && answer.Status[:3] != tt.status {
				t.Errorf("got %s, close %v, want status %q, close true", answer.Status, answer.Close, tt.status)
			}
			c.Close()
			if tt.reason == "" { // net/http has responded
				return
			}
			if e := r.next(kind(tt.name)); !strings.Contains(e.Reason, tt.reason) || !e.Req.Refused {
				t.Errorf("got reason %q, refused %t, want %q, refused", e.Reason, e.Req.Refused, tt.reason)
			}
		})
	}
	if n := len(u.requests()); n != 0 {
		t.Errorf("requests to the provider: got %d, want 0", n)
	}
	if got := r.post(gen, shortBody); got.status != http.StatusOK {
		t.Errorf("good request after the attacks: got %+v, want status 200", got)
	}
}

// kind returns the kind of the log line for a test of this name.
func kind(name string) string {
	if strings.HasPrefix(name, "CONNECT") {
		return Tunneled
	}
	return Requested
}

func TestTooManyAtOnce(t *testing.T) {
	release := make(chan struct{})
	u := serve(t, func(w http.ResponseWriter, _ *http.Request) { flush(w); <-release })
	s := setup(u.URL)
	s.Limits.Concurrent, s.Limits.Connections = 2, 4
	r := start(t, s)
	for range 2 {
		c := dial(t, r.addr)
		io.WriteString(c, raw(gen))
		readSome(t, c)
	}
	c := dial(t, r.addr)
	io.WriteString(c, raw(gen))
	if got := readSome(t, c); !strings.HasPrefix(got, "HTTP/1.1 503 ") || !strings.Contains(got, "Retry-After: 1\r\n") {
		t.Errorf("third request: got %q, want 503 with Retry-After: 1", got)
	}
	if e := r.next(Requested); e.Reason != "2 requests are under way" {
		t.Errorf("got reason %q, want that 2 requests are under way", e.Reason)
	}
	dial(t, r.addr)
	dial(t, r.addr)
	more := dial(t, r.addr)
	if n, err := more.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("one connection too many: got %d bytes, error %v, want an error", n, err)
	}
	close(release)
}

func TestBodiesAreBoundedTogether(t *testing.T) {
	s := setup(serve(t, say(http.StatusOK, "application/json", "{}")).URL)
	s.Limits.Body, s.Limits.Bodies = 1000, 1500
	r := start(t, s)
	slow := dial(t, r.addr)
	io.WriteString(slow, "POST /"+callID+gen+" HTTP/1.1\r\nHost: g\r\nExpect: 100-continue\r\nX-Api-Key: "+callTok+"\r\nContent-Length: 1000\r\n\r\n")
	readSome(t, slow) // "100 Continue": it counts as running
	if got := r.post(gen, shortBody+strings.Repeat(" ", 700)); got.status != http.StatusServiceUnavailable {
		t.Errorf("got %+v, want %d", got, http.StatusServiceUnavailable)
	}
	slow.Close()
	r.next(Requested)
	if e := r.next(Requested); e.Reason != "the body is incomplete" || !e.Req.Aborted {
		t.Errorf("got %+v, want an aborted request whose body did not arrive whole", e)
	}
	if got := r.post(gen, shortBody+strings.Repeat(" ", 700)); got.status != http.StatusOK {
		t.Errorf("request after the slow one left: got %+v, want status 200", got)
	}
}

// Tunnels that are opened and closed repeatedly have a limited number of log lines, and those without
// a line are counted.
func TestFloodOfTunnels(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	s := setup("http://127.0.0.1:1")
	s.Connect = []string{l.Addr().String()}
	r := startWith(t, Dialer{Also: func(netip.Addr) bool { return true }}, s)
	const flood = 1500
	for range flood {
		c := dial(t, r.addr)
		fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Bearer %s\r\n\r\n", l.Addr(), callTok)
		if all, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(all), "HTTP/1.1 200 ") {
			t.Fatalf("CONNECT to %s: got %q, error %v, want status 200", l.Addr(), all, err)
		}
		c.Close()
	}
	r.stop()
	lines, counted, seq := int64(0), int64(0), int64(1)
	for e := range r.lines {
		if e.Seq != seq+1 {
			t.Errorf("number of a line: got %d, want %d", e.Seq, seq+1)
		}
		seq = e.Seq
		counted += e.Unlogged
		if e.Kind == Tunneled {
			lines++
		}
	}
	if lines+counted != flood || lines < freeLines || lines > freeLines+10 {
		t.Errorf("tunnels: got %d lines and %d counted, want %d together with %d to %d lines",
			lines, counted, flood, freeLines, freeLines+10)
	}
}
