package environment

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"abl/internal/config"
)

func TestProxyOf(t *testing.T) {
	for name, c := range map[string]struct {
		setting string
		env     map[string]string
		want    string // HTTPS, HTTP, No, what is shown
	}{
		"none":             {"", nil, " |  |  | "},
		"environment":      {"", map[string]string{"HTTPS_PROXY": "http://u:p-word@a.example:1", "NO_PROXY": ".corp"}, "http://u:p-word@a.example:1 |  | .corp | http://a.example:1 (HTTPS_PROXY, with a login)"},
		"small letters":    {"", map[string]string{"https_proxy": "a.example:1", "http_proxy": "b.example:2"}, "a.example:1 | b.example:2 |  | http://a.example:1 (HTTPS_PROXY)"},
		"http only":        {"", map[string]string{"HTTP_PROXY": "http://b.example:2"}, " | http://b.example:2 |  | "},
		"the setting wins": {"http://c.example:3", map[string]string{"HTTPS_PROXY": "http://a.example:1", "no_proxy": "x"}, "http://c.example:3 | http://c.example:3 | x | http://c.example:3 (network.proxy)"},
		"off":              {"none", map[string]string{"HTTPS_PROXY": "http://a.example:1", "NO_PROXY": "x"}, " |  |  | "},
		"another protocol": {"", map[string]string{"HTTPS_PROXY": "socks5://a.example:1"}, "cannot use HTTPS_PROXY: want the address of an HTTP proxy, such as http://proxy.example:3128"},
	} {
		t.Run(name, func(t *testing.T) {
			conf := &config.Loaded{}
			conf.Network.Proxy = c.setting
			p, err := ProxyOf(conf, func(name string) string { return c.env[name] })
			got := fmt.Sprintf("%s | %s | %s | %s", string(p.HTTPS), string(p.HTTP), p.No, p.Shown())
			if err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// abl's own requests go through the proxy of the setting, too.
func TestTransport(t *testing.T) {
	var asked string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked = r.URL.String() }))
	t.Cleanup(proxy.Close)
	conf := &config.Loaded{}
	conf.Network.Proxy = proxy.URL
	way, err := Transport(conf, t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://provider.example/v1", nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := way.RoundTrip(q)
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if asked != "http://provider.example/v1" {
		t.Errorf("request to the proxy: got %q, want %q", asked, "http://provider.example/v1")
	}
	conf.Network.CACert = "missing.pem"
	if _, err := Transport(conf, t.TempDir(), ""); err == nil || !strings.Contains(err.Error(), "missing.pem") {
		t.Errorf("error of a missing network.ca_cert: got %v, want one that names missing.pem", err)
	}
}
