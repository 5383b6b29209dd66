package gateway

import (
	"encoding/base64"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
)

// registry starts a server that echoes each line, for localhost's ports, and returns a dialer for
// which only loopback addresses are public.
func registry(t *testing.T) (at string, d Dialer) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { io.Copy(c, c); c.Close() }()
		}
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return "localhost:" + port, Dialer{Also: netip.Addr.IsLoopback}
}

func TestConnect(t *testing.T) {
	s := setup("http://127.0.0.1:1")
	good, d := registry(t)
	s.Connect = []string{strings.ToUpper(good), "169.254.169.254:443", "127.0.0.9:443"}
	s.Inside = []netip.Addr{netip.MustParseAddr("::1"), netip.MustParseAddr("127.0.0.9")}
	r := startWith(t, d, s)
	auth := "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("abl:"+callTok)) + "\r\n"
	connect := func(target, more string) (net.Conn, string) {
		c := dial(t, r.addr)
		io.WriteString(c, "CONNECT "+target+" HTTP/1.1\r\nHost: "+target+"\r\n"+auth+"\r\n"+more)
		return c, readSome(t, c)
	}
	c, got := connect(good, "early")
	if !strings.HasPrefix(got, "HTTP/1.1 200 ") {
		t.Fatalf("got %q, want 200", got)
	}
	io.WriteString(c, " and late")
	c.(*net.TCPConn).CloseWrite()
	rest, err := io.ReadAll(c)
	if said := got[strings.Index(got, "\r\n\r\n")+4:] + string(rest); err != nil || said != "early and late" {
		t.Errorf("data of the tunnel: got %q, error %v, want %q", said, err, "early and late")
	}
	if e := r.next(Tunneled); e.Req.Host != good || e.Req.In != 14 || e.Req.Out != 14 || e.Req.Status != 200 || e.Req.Refused || e.Req.Cut {
		t.Errorf("log of the tunnel: got %+v, %+v, want %s with status 200 and 14 bytes each way", e, e.Req, good)
	}
	for _, host := range []string{"169.254.169.254:443", "127.0.0.9:443"} {
		if _, got = connect(host, ""); !strings.HasPrefix(got, "HTTP/1.1 403 ") {
			t.Errorf("%s: got %q, want 403", host, got)
		}
		if e := r.next(Tunneled); e.Reason != "its address is not public" || !e.Req.Refused || e.Req.Host != host {
			t.Errorf("log of %s: got %+v, %+v, want a refusal because its address is not public", host, e, e.Req)
		}
	}
	if _, got = connect("other.example:443", ""); !strings.HasPrefix(got, "HTTP/1.1 403 ") {
		t.Errorf("got %q, want 403", got)
	}
	if e := r.next(Tunneled); e.Reason != "other.example:443 is not in network.allow" || e.Req.Host != "other.example:443" || e.Req.Class != "connect" {
		t.Errorf("log of other.example:443: got %+v, %+v, want that it is not in network.allow", e, e.Req)
	}
}

func TestTunnelEndsWithItsCall(t *testing.T) {
	s := setup("http://127.0.0.1:1")
	good, d := registry(t)
	s.Connect = []string{good}
	r := startWith(t, d, s)
	c := dial(t, r.addr)
	io.WriteString(c, "CONNECT "+good+" HTTP/1.1\r\nHost: "+good+"\r\nProxy-Authorization: Bearer "+callTok+"\r\n\r\n")
	readSome(t, c)
	r.stop()
	if rest, _ := io.ReadAll(c); len(rest) > 0 {
		t.Errorf("got %q, want the end of the connection", rest)
	}
	if e := r.next(Tunneled); !e.Req.Cut {
		t.Errorf("got %+v, want a cut tunnel", e.Req)
	}
	r.next(Ended)
}
