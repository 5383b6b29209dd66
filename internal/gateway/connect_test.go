package gateway

import (
	"context"
	"encoding/base64"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
)

// registry is a dialer that finds every name where names says, and connects with
// a server that answers each line with itself.
func registry(t *testing.T, names map[string]string) Dialer {
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
	return Dialer{
		Lookup: func(_ context.Context, _, host string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr(names[host])}, nil
		},
		Dial: func(ctx context.Context, _, to string) (net.Conn, error) {
			if to != "93.184.216.34:443" {
				t.Errorf("it dials %s", to)
			}
			return (&net.Dialer{}).DialContext(ctx, "tcp", l.Addr().String())
		},
	}
}

func TestConnect(t *testing.T) {
	s := setup("http://127.0.0.1:1")
	s.Connect = []string{"Good.example:443", "inside.example:443", "host.example:443"}
	s.Inside = []string{"::1", "93.184.216.35"}
	r := startWith(t, registry(t, map[string]string{"good.example": "93.184.216.34", "inside.example": "169.254.169.254", "host.example": "93.184.216.35"}), s)
	auth := "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("abl:"+callTok)) + "\r\n"
	connect := func(target, more string) (net.Conn, string) {
		c := dial(t, r.addr)
		io.WriteString(c, "CONNECT "+target+" HTTP/1.1\r\nHost: "+target+"\r\n"+auth+"\r\n"+more)
		return c, readSome(t, c)
	}
	c, got := connect("good.example:443", "early")
	if !strings.HasPrefix(got, "HTTP/1.1 200 ") {
		t.Fatalf("%q", got)
	}
	io.WriteString(c, " and late")
	c.(*net.TCPConn).CloseWrite()
	rest, err := io.ReadAll(c)
	if said := got[strings.Index(got, "\r\n\r\n")+4:] + string(rest); err != nil || said != "early and late" {
		t.Errorf("%q, %v", said, err)
	}
	if e := r.next(Tunneled); e.Req.Host != "good.example:443" || e.Req.In != 14 || e.Req.Out != 14 || e.Req.Status != 200 || e.Req.Refused || e.Req.Cut {
		t.Errorf("%+v %+v", e, e.Req)
	}
	for _, host := range []string{"inside.example", "host.example"} {
		if _, got = connect(host+":443", ""); !strings.HasPrefix(got, "HTTP/1.1 403 ") {
			t.Errorf("%q", got)
		}
		if e := r.next(Tunneled); e.Reason != `cannot connect with "`+host+`": it resolves to no public address` || !e.Req.Refused || e.Req.Host != host+":443" {
			t.Errorf("%+v %+v", e, e.Req)
		}
	}
	if _, got = connect("other.example:443", ""); !strings.HasPrefix(got, "HTTP/1.1 403 ") {
		t.Errorf("%q", got)
	}
	if e := r.next(Tunneled); e.Reason != "other.example:443 is not in network.allow" || e.Req.Host != "other.example:443" || e.Req.Class != "connect" {
		t.Errorf("%+v %+v", e, e.Req)
	}
}

func TestTunnelEndsWithItsCall(t *testing.T) {
	s := setup("http://127.0.0.1:1")
	s.Connect = []string{"good.example:443"}
	r := startWith(t, registry(t, map[string]string{"good.example": "93.184.216.34"}), s)
	c := dial(t, r.addr)
	io.WriteString(c, "CONNECT good.example:443 HTTP/1.1\r\nHost: good.example:443\r\nProxy-Authorization: Bearer "+callTok+"\r\n\r\n")
	readSome(t, c)
	r.send(`{"stop":true}`)
	if rest, _ := io.ReadAll(c); len(rest) > 0 {
		t.Errorf("%q", rest)
	}
	if e := r.next(Tunneled); !e.Req.Cut {
		t.Errorf("%+v", e)
	}
	r.next(Ended)
}
