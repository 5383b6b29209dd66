package lab

import (
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// CompanyProxy is an HTTP proxy on this machine that requires a user and a password. It connects
// every host name to the same server.
type CompanyProxy struct {
	Host string // HOST:PORT

	t     testing.TB
	login string
	to    string

	mu     sync.Mutex
	tunnel []string
}

// NewCompanyProxy starts a proxy at address, which is HOST:0. All its tunnels lead to the server
// at to.
func NewCompanyProxy(t testing.TB, address, user, password, to string) *CompanyProxy {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	p := &CompanyProxy{Host: l.Addr().String(), t: t, login: user + ":" + password, to: to}
	s := httptest.NewUnstartedServer(p)
	s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	return p
}

// Tunnels returns the targets of all tunnels that clients opened.
func (p *CompanyProxy) Tunnels() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.tunnel, " ")
}

// ServeHTTP opens tunnels.
func (p *CompanyProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	login, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(r.Header.Get("Proxy-Authorization"), "Basic "))
	if r.Method != http.MethodConnect || string(login) != p.login {
		w.WriteHeader(http.StatusProxyAuthRequired)
		return
	}
	far, err := net.Dial("tcp", p.to)
	if err != nil {
		p.t.Error(err)
		return
	}
	defer far.Close()
	near, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		p.t.Error(err)
		return
	}
	defer near.Close()
	p.mu.Lock()
	p.tunnel = append(p.tunnel, r.Host)
	p.mu.Unlock()
	if _, err := io.WriteString(near, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(far, near)
		_ = far.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(near, far)
}
