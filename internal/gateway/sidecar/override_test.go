package sidecar

import (
	"strings"
	"testing"
)

func TestOverride(t *testing.T) {
	for _, c := range []struct {
		raw  string
		way  Way
		want string // the address, or a part of the error
	}{
		{"https://proxy.example", Direct, "https://proxy.example"},
		{"https://Proxy.Example:8443/v1/", Direct, "https://proxy.example:8443/v1"},
		{"http://10.1.2.3:11434", Direct, "http://10.1.2.3:11434"},
		{"http://[fd00::7]:80/x", Direct, "http://[fd00::7]:80/x"},
		{"http://models", Direct, "http://models"},
		{"http://127.0.0.1:8080/proxy/v1", Forwarded, "http://127.0.0.1:8080/proxy/v1"},
		{"http://127.9.9.9", Forwarded, "http://127.9.9.9"},
		{"https://localhost:4000", Forwarded, "https://localhost:4000"},
		{"https://LOCALHOST.:4000/", Forwarded, "https://localhost.:4000"},
		{"http://x.localhost", Forwarded, "http://x.localhost"},
		{"http://[::1]:1", Forwarded, "http://[::1]:1"},
		{"http://[::ffff:127.0.0.1]:1", Forwarded, "http://[::ffff:127.0.0.1]:1"},

		{"", "", "begins with http:// or https://"},
		{"127.0.0.1:8080", "", "want"},
		{"localhost:8080", "", "want"},
		{"ftp://x.example", "", "begins with http"},
		{"unix:///run/x.sock", "", "begins with http"},
		{"https:proxy.example", "", "no address"},
		{"https://", "", "no host"},
		{"https://:443", "", "no host"},
		{"https:///v1", "", "no host"},
		{"https://a..b", "", "no host"},
		{"https://me:hunter2@x.example", "", "user name or password"},
		{"https://me@x.example", "", "user name or password"},
		{"https://x.example/?key=hunter2", "", "after its path"},
		{"https://x.example/?", "", "after its path"},
		{"https://x.example/#hunter2", "", "after its path"},
		{"https://x.example/#", "", "after its path"},
		{"https://x.example/a%2fb", "", "percent-encoded"},
		{"https://x.example/a/../b", "", "dotted"},
		{"https://x.example/a//b", "", "empty"},
		{"https://x.example:0", "", "port"},
		{"https://x.example:65536", "", "port"},
		{"https://x.example:", "", "port"},
		{"https://x.example:http", "", "no address"},
		{"https://x.example /v1", "", "space"},
		{"https://x.example\n", "", "space"},
		{`https://x.example\@y.example`, "", "space or another"},
		{"https://ex\u00e4mple.example", "", "space or another"},
		{"http://0.0.0.0:8080", "", "127.0.0.1"},
		{"http://[::]:8080", "", "127.0.0.1"},
		{"http://169.254.169.254", "", "link-local"},
		{"http://[fe80::1]:80", "", "link-local"},
		{"http://[fe80::1%25eth0]:80", "", "percent"},
		{"http://127.1:80", "", "neither a name"},
		{"http://2130706433", "", "neither a name"},
		{"http://0x7f.0.0.1", "", "neither a name"},
		{"http://0177.0.0.1", "", "neither a name"},
	} {
		way, u, err := Override("OPENAI_BASE_URL", c.raw)
		if c.way != "" {
			if err != nil || way != c.way || u.String() != c.want {
				t.Errorf("%q: %q %v, %v; want %q %q", c.raw, way, u, err, c.way, c.want)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "OPENAI_BASE_URL") {
			t.Errorf("%q: %q %v, error %v, want one with %q", c.raw, way, u, err, c.want)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: the error shows the password: %v", c.raw, err)
		}
	}
}
