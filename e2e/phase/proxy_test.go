package phase

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"abl/internal/testing/lab"
)

// companyProject returns a project of a user whose machine reaches the internet through a proxy
// that re-signs TLS, like many companies' proxies. It also returns the proxy's address with the
// user's login.
func companyProject(t *testing.T, p *lab.Project, at string) (proxy *lab.CompanyProxy, address string) {
	t.Helper()
	key, cert := certificate(t, "provider.example", "registry.example")
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host == "registry.example" {
			fmt.Fprintln(w, "a package from", r.Host)
			return
		}
		fmt.Fprint(w, `{"candidates":[{"content":{"parts":[{"text":"hello"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":4,"candidatesTokenCount":5,"totalTokenCount":9}}`)
	}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	s.StartTLS()
	t.Cleanup(s.Close)
	p.Write(".abl/ca.pem", string(cert))
	proxy = lab.NewCompanyProxy(t, at, "me", "pass-word", s.Listener.Addr().String())
	p.Env = append(p.Env, "GEMINI_API_KEY=a-key-of-the-user", "GOOGLE_GEMINI_BASE_URL=https://provider.example")
	u := url.URL{Scheme: "http", User: url.UserPassword("me", "pass-word"), Host: proxy.Host}
	return proxy, u.String()
}

// hostAddress returns an address of this machine that containers reach.
func hostAddress(t *testing.T) string {
	t.Helper()
	addr := docker(t, "network", "inspect", "bridge", "-f", "{{(index .IPAM.Config 0).Gateway}}")
	if net.ParseIP(addr) == nil {
		t.Skipf("the engine's bridge has the address %q", addr)
	}
	return addr
}

// A call reaches its provider, and the Builder a registry of network.allow, through the proxy of
// HTTPS_PROXY, with the company's CA. The proxy is on this machine's loopback, or elsewhere. No
// log contains the password.
func TestCompanyProxy(t *testing.T) {
	for name, at := range map[string]func(*testing.T) string{
		"loopback":  func(*testing.T) string { return "127.0.0.1" },
		"elsewhere": hostAddress,
	} {
		t.Run(name, func(t *testing.T) {
			if name == "loopback" {
				lab.Long(t)
			}
			p := newProject(t, "", verifies())
			lab.Local(t)
			proxy, address := companyProject(t, p, net.JoinHostPort(at(t), "0"))
			const agents = "agent: scripted\nagents: {scripted: {scenario: .abl/scenario.yaml}}\n"
			p.Write(".abl/config.yaml", strings.Replace(p.Read(".abl/config.yaml"), agents,
				lab.File(t, "asks-through-a-proxy.yaml"), 1)+
				nodeApp+"network: {ca_cert: .abl/ca.pem, allow: [registry.example]}\n")
			p.Env = append(p.Env, "HTTPS_PROXY="+address, "NO_PROXY=.corp")
			wants(t, "doctor", p.Run("doctor").Stdout,
				"proxy      http://"+proxy.Host+" (HTTPS_PROXY, with a login); not for .corp\n")
			r := p.Must(0, "phase", "1", "--json")
			wants(t, "the tunnels", proxy.Tunnels(), "provider.example:443", "registry.example:443")
			wants(t, "the Builder", p.Read(".abl/logs/calls/p1-build-1.1/stdout")+p.Read(".abl/logs/calls/p1-build-1.1/stderr"), "200\n", "a package from registry.example")
			if row := ledgerRows(p)[0]; row["total"] != "9" || row["source"] != "gateway" {
				t.Errorf("tokens of the ledger: got %s by %s, want 9 by the gateway", row["total"], row["source"])
			}
			lacks(t, "abl's output and files", r.Stdout+r.Stderr+p.Read(".abl/logs/calls/p1-build-1.1/gateway.jsonl")+
				p.Read(".abl/logs/calls/p1-build-1.1/intent.json"), "pass-word")
			checkNothingLeft(p)
		})
	}
}

// Without a route to the provider the first call ends within seconds. abl reports the reason and
// does not wait.
func TestNoRouteToTheProvider(t *testing.T) {
	for name, c := range map[string]struct{ env, says string }{
		"no proxy":       {"ABL_NETWORK_PROXY=none", "provider.example"},
		"no password":    {"HTTPS_PROXY=http://PROXY", "requires a user and a password"},
		"nobody listens": {"ABL_NETWORK_PROXY=http://127.0.0.2:9", "cannot reach the proxy 127.0.0.2:9"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "no password" {
				lab.Long(t)
			}
			p := newProject(t, "", verifies())
			lab.Local(t)
			proxy, _ := companyProject(t, p, "127.0.0.1:0")
			const agents = "agent: scripted\nagents: {scripted: {scenario: .abl/scenario.yaml}}\n"
			p.Write(".abl/config.yaml", strings.Replace(p.Read(".abl/config.yaml"), agents,
				lab.File(t, "asks-through-a-proxy.yaml"), 1)+nodeApp)
			p.Env = append(p.Env, strings.ReplaceAll(c.env, "http://PROXY", "http://"+proxy.Host))
			r := p.Must(75, "phase", "1")
			wants(t, "standard error", r.Stderr, "no request of this run reached the provider", c.says, "network.proxy")
			if r.Took > time.Minute {
				t.Errorf("duration of abl: got %s, want at most %s", r.Took, time.Minute)
			}
			wants(t, "the outcome", p.Read(".abl/logs/calls/p1-build-1.1/outcome.json"), `"class": "network"`)
			checkNothingLeft(p)
		})
	}
}
