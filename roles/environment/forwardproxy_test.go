package environment

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"abl/internal/testing/lab"
)

// A gateway's tunnel reaches a proxy on the loopback interface with the token, and with the user's
// login for the proxy.
func TestListenProxy(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
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
			fmt.Fprintln(c, "hello from far")
			c.Close()
		}
	}()
	proxy := lab.NewCompanyProxy(t, "127.0.0.1:0", "me", "pass-word", l.Addr().String())
	for name, c := range map[string]struct {
		login, token, status, rest string
	}{
		"passes":         {"me:pass-word@", "", "200", "hello from far\n"},
		"wrong token":    {"me:pass-word@", "other", "404", ""},
		"wrong password": {"me:wrong@", "", "502", "requires a user and a password"},
	} {
		t.Run(name, func(t *testing.T) {
			target, err := url.Parse("http://" + c.login + proxy.Host)
			if err != nil {
				t.Fatal(err)
			}
			f, err := forwardProxy(t.Context(), listening{Addr: netip.MustParseAddrPort("127.0.0.1:0")}, target, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			at, err := url.Parse(f.ProxyURL())
			if err != nil {
				t.Fatal(err)
			}
			token, _ := at.User.Password()
			if c.token != "" {
				token = c.token
			}
			conn, err := net.Dial("tcp", at.Host)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			q := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: "far.example:443"}, Host: "far.example:443", Header: http.Header{}}
			q.SetBasicAuth("abl", token)
			q.Header["Proxy-Authorization"] = q.Header["Authorization"]
			q.Header.Del("Authorization")
			if err := q.Write(conn); err != nil {
				t.Fatal(err)
			}
			in := bufio.NewReader(conn)
			r, err := http.ReadResponse(in, q)
			if err != nil {
				t.Fatal(err)
			}
			rest := r.Header.Get("Abl-Reason")
			if r.StatusCode == http.StatusOK {
				rest, err = in.ReadString('\n')
			}
			if err != nil || !strings.HasPrefix(r.Status, c.status) || !strings.Contains(rest, c.rest) || strings.Contains(rest, "pass-word") {
				t.Errorf("got %s and %q, %v; want %s and %q", r.Status, rest, err, c.status, c.rest)
			}
		})
	}
}
