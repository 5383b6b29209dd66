package gateway

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"abl/internal/outcome"
)

// companyProxy is an HTTP proxy that requires a user and a password. It connects every name to one
// server.
type companyProxy struct {
	*httptest.Server
	to string

	mu    sync.Mutex
	asked []string
}

func proxyTo(t *testing.T, to string) *companyProxy {
	t.Helper()
	p := &companyProxy{to: to}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

// address returns the proxy's address, with a user and a password if given.
func (p *companyProxy) address(user *url.Userinfo) Secret {
	u, err := url.Parse(p.URL)
	if err != nil {
		panic(err)
	}
	u.User = user
	return Secret(u.String())
}

func (p *companyProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.asked = append(p.asked, r.Method+" "+r.Host)
	p.mu.Unlock()
	user := strings.TrimPrefix(r.Header.Get("Proxy-Authorization"), "Basic ")
	if plain, _ := base64.StdEncoding.DecodeString(user); string(plain) != "me:pass-word" {
		w.WriteHeader(http.StatusProxyAuthRequired)
		return
	}
	if strings.HasPrefix(r.Host, "forbidden.") {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	far, err := net.Dial("tcp", p.to)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	near, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	fmt.Fprint(near, "HTTP/1.1 200 OK\r\n\r\n")
	go func() { _, _ = io.Copy(far, near); _ = far.(*net.TCPConn).CloseWrite() }()
	_, _ = io.Copy(near, far)
	near.Close()
	far.Close()
}

func (p *companyProxy) seen() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.asked, "|")
}

// The gateway reaches the provider through a proxy with a password and the company's CA. It does not
// use the proxy for names in NO_PROXY, and logs no password.
func TestProviderThroughAProxy(t *testing.T) {
	far := httptest.NewTLSServer(say(200, "application/json", `{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"totalTokenCount":9}}`))
	t.Cleanup(far.Close)
	proxy := proxyTo(t, far.Listener.Addr().String())
	me := url.UserPassword("me", "pass-word")
	for name, c := range map[string]struct {
		host   string
		user   *url.Userinfo
		no     string
		status int
		asked  string // requests to the proxy
		reason string
	}{
		"passes":         {"example.com", me, "", 200, "CONNECT example.com:443", ""},
		"no password":    {"example.com", nil, "", 502, "CONNECT example.com:443", "requires a user and a password"},
		"wrong password": {"example.com", url.UserPassword("me", "wrong"), "", 502, "CONNECT example.com:443", "requires a user and a password"},
		"refused":        {"forbidden.example.com", me, "", 502, "CONNECT forbidden.example.com:443", "refuses the connection: 403 Forbidden"},
		"not for it":     {"no-such-name.invalid", me, ".invalid", 502, "", "no-such-name.invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			proxy.asked = nil
			s := setup("https://" + c.host)
			s.CA = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: far.Certificate().Raw}))
			s.Proxies = Proxies{HTTPS: proxy.address(c.user), No: c.no}
			r := start(t, s)
			got := r.post("/gemini/v1beta/models/m1:generateContent", shortBody)
			e := r.next(Requested)
			if got.status != c.status || proxy.seen() != c.asked || !strings.Contains(e.Reason, c.reason) {
				t.Errorf("got status %d, requests to the proxy %q, reason %q, want %d, %q, %q",
					got.status, proxy.seen(), e.Reason, c.status, c.asked, c.reason)
			}
			if c.status == 502 && (e.Req.Trouble != outcome.Network || e.Req.Charged != 0) {
				t.Errorf("trouble: got %q, charge %d, want %q, 0", e.Req.Trouble, e.Req.Charged, outcome.Network)
			}
			if all := r.log() + got.body; strings.Contains(all, "pass-word") || strings.Contains(all, basic(me)) {
				t.Errorf("log and response: got %s, want them without the password", all)
			}
		})
	}
}

// A tunnel of network.allow uses the proxy, too. A name with a private address here is refused.
func TestTunnelThroughAProxy(t *testing.T) {
	good, d := registry(t)
	proxy := proxyTo(t, strings.Replace(good, "localhost", "127.0.0.1", 1))
	d.Also = nil
	s := setup("http://127.0.0.1:1")
	s.Connect = []string{"registry.invalid:443", "10.9.8.7:443"}
	s.Proxies = Proxies{HTTPS: proxy.address(url.UserPassword("me", "pass-word"))}
	r := startWith(t, d, s)
	auth := "Proxy-Authorization: Bearer " + callTok + "\r\n\r\n"
	c := dial(t, r.addr)
	io.WriteString(c, "CONNECT registry.invalid:443 HTTP/1.1\r\nHost: registry.invalid:443\r\n"+auth+"hello")
	c.(*net.TCPConn).CloseWrite()
	all, err := io.ReadAll(c)
	if err != nil || !strings.HasPrefix(string(all), "HTTP/1.1 200 ") || !strings.HasSuffix(string(all), "hello") || proxy.seen() != "CONNECT registry.invalid:443" {
		t.Errorf("tunnel: got %q, error %v, requests to the proxy %q, want 200 with hello, one to registry.invalid",
			all, err, proxy.seen())
	}
	r.next(Tunneled)
	c = dial(t, r.addr)
	io.WriteString(c, "CONNECT 10.9.8.7:443 HTTP/1.1\r\nHost: 10.9.8.7:443\r\n"+auth)
	if got := readSome(t, c); !strings.HasPrefix(got, "HTTP/1.1 403 ") || strings.Contains(proxy.seen(), "10.9.8.7") {
		t.Errorf("got %q, want 403; the proxy was asked %q", got, proxy.seen())
	}
}

// If no request of a run has reached a provider, the gateway ends the agent soon. Later it lets the
// agent retry.
func TestFirstRequestsWithoutARoute(t *testing.T) {
	const path = "/gemini/v1beta/models/m1:generateContent"
	for name, first := range map[string]bool{"first": true, "later": false} {
		t.Run(name, func(t *testing.T) {
			s := setup("https://provider.invalid")
			s.First = first
			r := start(t, s)
			var got []int
			for range 4 {
				got = append(got, r.post(path, shortBody).status)
			}
			want := map[bool]string{true: "[502 502 403 403]", false: "[502 502 502 502]"}[first]
			if fmt.Sprint(got) != want {
				t.Errorf("statuses: got %v, want %s", got, want)
			}
			var log []Entry
			for range 4 {
				log = append(log, r.next(Requested))
			}
			if end := LastTrouble(log, callID); end.Class != outcome.Network || !strings.Contains(end.What, "provider.invalid") {
				t.Errorf("trouble of the call: got %+v, want class %q and a text with provider.invalid",
					end, outcome.Network)
			}
		})
	}
	answers := serve(t, say(500, "text/plain", "no"))
	s := setup(answers.URL)
	s.First = true
	r := start(t, s)
	r.post(path, shortBody)
	answers.Close()
	for range 4 {
		if got := r.post(path, shortBody); got.status != 502 {
			t.Errorf("status after a response: got %d, want 502", got.status)
		}
	}
}

func TestParseProxy(t *testing.T) {
	for raw, want := range map[string]string{
		"http://proxy.example:3128": "http://proxy.example:3128", "proxy.example:3128": "http://proxy.example:3128",
		"http://u:p@proxy.example/": "http://u:p@proxy.example:80/", "https://proxy.example": "https://proxy.example:443",
		"http://[fd00::1]": "http://[fd00::1]:80", "socks5://proxy.example:1": "", "http://": "", "http://proxy.example/x": "", "http://a b": "",
	} {
		u, err := ParseProxy(raw)
		if want == "" && err == nil || want != "" && (err != nil || u.String() != want) {
			t.Errorf("%s: got %v, %v, want %q", raw, u, err, want)
		}
	}
}

// Of abl's relay the error between abl and the proxy is reported.
func TestRefusalOfTheRelay(t *testing.T) {
	r := &http.Response{StatusCode: http.StatusBadGateway, Status: "502 Bad Gateway", Header: http.Header{}}
	proxy := &url.URL{Host: "127.0.0.1:1"}
	for reason, want := range map[string]string{
		"":                         "the proxy 127.0.0.1:1 refuses the connection: 502 Bad Gateway",
		"cannot reach the proxy x": "cannot reach the proxy x",
	} {
		r.Header.Set(reasonHeader, reason)
		if err := refusal(t.Context(), proxy, nil, r); err == nil || err.Error() != want || !FailedToDial(err) {
			t.Errorf("%q: got %v, want %q, and that the request reached nobody", reason, err, want)
		}
	}
}
