package environment

import (
	"bufio"
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"abl/internal/gateway"
)

var here = netip.MustParseAddrPort("127.0.0.1:0")

func forward(t *testing.T, target string, roots *x509.CertPool) *forwarder {
	t.Helper()
	u, local, err := gateway.ParseAddress(target)
	if err != nil || !local {
		t.Fatal(local, err)
	}
	f, err := forwardServer(t.Context(), listening{Addr: here}, u, roots)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// raw sends bytes and returns the response until the other side closes.
func raw(t *testing.T, addr, text string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	all, _ := io.ReadAll(c) // some tests expect a cut connection
	return string(all)
}

// verbatim is a server that records the bytes of one request and responds with bytes.
func verbatim(t *testing.T, answer string) (address string, asked <-chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	got := make(chan string, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		r := bufio.NewReader(c)
		var head strings.Builder
		length := 0
		for line := ""; line != "\r\n"; {
			if line, err = r.ReadString('\n'); err != nil {
				return
			}
			head.WriteString(line)
			fmt.Sscanf(line, "Content-Length: %d", &length) //nolint:errcheck // other lines
		}
		body := make([]byte, length)
		if _, err := io.ReadFull(r, body); err != nil {
			return
		}
		got <- head.String() + string(body)
		io.WriteString(c, answer) //nolint:errcheck // the test sees it
	}()
	return l.Addr().String(), got
}

// Neither side gets a header that the other did not send.
func TestNothingAdded(t *testing.T) {
	addr, asked := verbatim(t, "HTTP/1.1 418 Odd\r\nX-One: 1\r\nConnection: x-hop\r\nX-Hop: 1\r\nLocation: http://elsewhere.example/\r\nDate: then\r\nContent-Length: 2\r\n\r\nno")
	f := forward(t, "http://"+addr+"/base", nil)
	got := raw(t, f.At.Addr.String(), "POST /"+f.At.Token+"/v1/m:go?alt=sse HTTP/1.1\r\nHost: elsewhere\r\nX-Goog-Api-Key: k\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbody")
	if got, want := <-asked, "POST /base/v1/m:go?alt=sse HTTP/1.1\r\nHost: "+addr+"\r\nContent-Length: 4\r\nX-Goog-Api-Key: k\r\n\r\nbody"; got != want {
		t.Errorf("request to the server: got %q, want %q", got, want)
	}
	if want := "HTTP/1.1 418 I'm a teapot\r\nContent-Length: 2\r\nDate: then\r\nLocation: http://elsewhere.example/\r\nX-One: 1\r\nConnection: close\r\n\r\nno"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRefused(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer server.Close()
	f := forward(t, server.URL, nil)
	token := f.At.Token
	for request, status := range map[string]string{
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n":                                                          "404",
		"GET /" + token[1:] + "/x HTTP/1.1\r\nHost: x\r\n\r\n":                                       "404",
		"GET /" + token + "x/x HTTP/1.1\r\nHost: x\r\n\r\n":                                          "404",
		"GET /x/" + token + " HTTP/1.1\r\nHost: x\r\n\r\n":                                           "404",
		"GET //" + token + "/x HTTP/1.1\r\nHost: x\r\n\r\n":                                          "404",
		"CONNECT 127.0.0.1:1 HTTP/1.1\r\nHost: x\r\n\r\n":                                            "404",
		"GET /" + token + "/x HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 80<<10) + "\r\n\r\n": "431",
		"nonsense\r\n\r\n": "400",
	} {
		if got := raw(t, f.At.Addr.String(), request); !strings.HasPrefix(got, "HTTP/1.1 "+status+" ") || strings.Contains(got, token) {
			t.Errorf("%.80q: got %.80q, want %s", request, got, status)
		}
	}
	if asked.Load() != 0 {
		t.Errorf("requests to the server: got %d, want 0", asked.Load())
	}
	if resp, err := http.Get(f.URL()); err != nil || resp.StatusCode != http.StatusOK || asked.Load() != 1 {
		t.Errorf("with the token: got response %v, error %v, %d requests, want status 200, 1 request",
			resp, err, asked.Load())
	}
}

// Foreign clients cannot open many connections. When one of them closes, the next one is served.
func TestConnectionsAreBounded(t *testing.T) {
	f := forward(t, "http://127.0.0.1:1", nil)
	dial := func() net.Conn {
		c, err := net.Dial("tcp", f.At.Addr.String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	asks := func() bool {
		c := dial()
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n") //nolint:errcheck // the answer shows it
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		return err == nil && answer.StatusCode == http.StatusNotFound
	}
	first := dial()
	for range maxConnections - 1 {
		dial()
	}
	if asks() {
		t.Errorf("connection after %d others: got a response, want none", maxConnections)
	}
	first.Close()
	for !asks() { // until the forwarder has noticed
		time.Sleep(time.Millisecond)
	}
}

// The client gets each piece before the server writes the next one.
func TestStreams(t *testing.T) {
	next := make(chan bool)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
		control := http.NewResponseController(w)
		for i := 0; control.Flush() == nil && <-next; i++ {
			fmt.Fprintf(w, "piece %d\n", i) //nolint:errcheck // the client sees it
		}
	}))
	defer server.Close()
	f := forward(t, server.URL, nil)
	resp, err := http.Get(f.URL() + "/stream") // returns with the headers
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	for i := range 5 {
		next <- true
		if line, err := lines.ReadString('\n'); err != nil || line != fmt.Sprintf("piece %d\n", i) {
			t.Fatalf("line: got %q, error %v, want %q", line, err, fmt.Sprintf("piece %d\n", i))
		}
	}
	next <- false
	if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
		t.Errorf("rest of the response: got %q, error %v, want none", rest, err)
	}
}

func TestCutStaysCut(t *testing.T) {
	for name, answer := range map[string]string{
		"chunked": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
		"length":  "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf",
	} {
		t.Run(name, func(t *testing.T) {
			addr, _ := verbatim(t, answer)
			f := forward(t, "http://"+addr, nil)
			resp, err := http.Get(f.URL())
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if string(got) != "half" || !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("got %q, %v, want half and %v", got, err, io.ErrUnexpectedEOF)
			}
		})
	}
}

// If a gateway disconnects, the request to the server ends.
func TestClientLeaves(t *testing.T) {
	begun, over := make(chan bool), make(chan bool)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
		close(over)
	}))
	defer server.Close()
	f := forward(t, server.URL, nil)
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, f.URL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() { <-begun; cancel() }()
	if _, err := http.DefaultClient.Do(r); !errors.Is(err, context.Canceled) {
		t.Errorf("error of a cancelled request: got %v, want %v", err, context.Canceled)
	}
	<-over
}

func TestManyAtOnce(t *testing.T) {
	body := bytes.Repeat([]byte("0123456789abcdef"), 64<<10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK) // before the body is read
		_ = http.NewResponseController(w).EnableFullDuplex()
		io.Copy(w, r.Body) //nolint:errcheck // the client sees it
	}))
	defer server.Close()
	f := forward(t, server.URL, nil)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	defer client.CloseIdleConnections()
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for size := 1; size <= 4096; size *= 8 {
				resp, err := client.Post(f.URL()+"/echo", "text/plain", bytes.NewReader(body[:size]))
				if err != nil {
					t.Error(err)
					return
				}
				got, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil || !bytes.Equal(got, body[:size]) {
					t.Errorf("echo of %d bytes: got %d bytes, error %v, want the same bytes", size, len(got), err)
				}
			}
		})
	}
	all.Wait()
}

// A server may respond before it has read the body, and still gets all of it.
func TestAnswerBeforeTheBody(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		if err := errors.Join(control.EnableFullDuplex(), control.Flush()); err != nil {
			t.Error(err)
		}
		io.Copy(w, r.Body) //nolint:errcheck // the client sees it
	}))
	defer server.Close()
	f := forward(t, server.URL, nil)
	half := strings.Repeat("x", 512<<10)
	from, to := io.Pipe()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.URL(), from)
	if err != nil {
		t.Fatal(err)
	}
	r.ContentLength = int64(2 * len(half))
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	go func() {
		for range 2 {
			io.WriteString(to, half) //nolint:errcheck // the test sees it
		}
		to.Close()
	}()
	if got, err := io.ReadAll(resp.Body); err != nil || string(got) != half+half {
		t.Errorf("echo of %d bytes: got %d bytes, error %v, want the same bytes", 2*len(half), len(got), err)
	}
}

func TestTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "yes") })) //nolint:errcheck // the client sees it
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	for status, pool := range map[int]*x509.CertPool{http.StatusOK: roots, http.StatusBadGateway: x509.NewCertPool()} {
		resp, err := http.Get(forward(t, server.URL, pool).URL())
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != status {
			t.Errorf("status: got %d, want %d", resp.StatusCode, status)
		}
	}
}

// abl is killed and restarted: the gateway finds the server at the same address.
func TestComesBack(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	target, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	ctx, kill := context.WithCancel(t.Context())
	first, err := forwardServer(ctx, listening{Addr: here}, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	address := first.URL()
	if _, err := forwardServer(t.Context(), first.At, target, nil); err == nil || !strings.Contains(err.Error(), "cannot listen for the gateway") {
		t.Errorf("error of a second server: got %v, want one with %q", err, "cannot listen for the gateway")
	}
	kept, err := json.Marshal(first.At)
	if err != nil {
		t.Fatal(err)
	}
	kill()
	for err = nil; err == nil; _, err = http.Get(address) { // until it has ended
		time.Sleep(time.Millisecond)
	}
	var state listening
	if err := json.Unmarshal(kept, &state); err != nil {
		t.Fatal(err)
	}
	second, err := forwardServer(t.Context(), state, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if resp, err := http.Get(address); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("request to the old address: got response %v, error %v, want status 200", resp, err)
	}
}

// The gateway distinguishes a server that does not respond from one that responds with the same
// status. Only abl's own header decides.
func TestNoResponse(t *testing.T) {
	liar := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/reset") {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set(gateway.NoAnswer, gateway.NotAsked)
		w.WriteHeader(http.StatusBadGateway)
	}))
	liar.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(liar.Close)
	for _, c := range []struct{ name, target, path, says, header string }{
		{"closed-port", "http://127.0.0.1:1", "", "does not respond", gateway.NotAsked},
		{"reset", liar.URL, "/reset", "does not respond", gateway.Asked},
		{"claim-of-the-server", liar.URL, "/says", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := forward(t, c.target, nil)
			resp, err := http.Get(f.URL() + c.path)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != http.StatusBadGateway || !strings.Contains(string(text), c.says) || strings.Contains(string(text), f.At.Token) {
				t.Errorf("got %d %s, %v, want 502 and %q without a token", resp.StatusCode, text, err, c.says)
			}
			if got := resp.Header.Get(gateway.NoAnswer); got != c.header {
				t.Errorf("got %s %q, want %q", gateway.NoAnswer, got, c.header)
			}
		})
	}
}
