package gateway

import (
	"strings"
	"testing"
)

func TestParseAddress(t *testing.T) {
	for _, c := range []struct {
		raw  string
		way  string // "" for an error
		want string // the address
	}{
		{"https://proxy.example", "direct", "https://proxy.example"},
		{"https://Proxy.Example:8443/v1/", "direct", "https://proxy.example:8443/v1"},
		{"http://10.1.2.3:11434", "direct", "http://10.1.2.3:11434"},
		{"http://[fd00::7]:80/x", "direct", "http://[fd00::7]:80/x"},
		{"http://models", "direct", "http://models"},
		{"http://127.0.0.1:8080/proxy/v1", "local", "http://127.0.0.1:8080/proxy/v1"},
		{"http://127.9.9.9", "local", "http://127.9.9.9"},
		{"https://localhost:4000", "local", "https://localhost:4000"},
		{"https://LOCALHOST.:4000/", "local", "https://localhost.:4000"},
		{"http://x.localhost", "local", "http://x.localhost"},
		{"http://[::1]:1", "local", "http://[::1]:1"},
		{"http://[::ffff:127.0.0.1]:1", "local", "http://[::ffff:127.0.0.1]:1"},
		{"http://0.0.0.0:8080", "local", "http://0.0.0.0:8080"},
		{"http://[::]:8080", "local", "http://[::]:8080"},

		{"", "", ""},
		{"127.0.0.1:8080", "", ""},
		{"localhost:8080", "", ""},
		{"ftp://x.example", "", ""},
		{"unix:///run/x.sock", "", ""},
		{"https:proxy.example", "", ""},
		{"https://", "", ""},
		{"https://:443", "", ""},
		{"https:///v1", "", ""},
		{"https://me:hunter2@x.example", "", ""},
		{"https://me@x.example", "", ""},
		{"https://x.example/?key=hunter2", "", ""},
		{"https://x.example/?", "", ""},
		{"https://x.example/#hunter2", "", ""},
		{"https://x.example/#", "", ""},
		{"https://x.example/a%2fb", "", ""},
		{"https://x.example:http", "", ""},
		{"https://x.example /v1", "", ""},
		{"https://x.example\n", "", ""},
		{"http://[fe80::1%25eth0]:80", "", ""},
		{`https://x.example\@y.example`, "", ""},
	} {
		u, local, err := ParseAddress(c.raw)
		if c.way != "" {
			if err != nil || local != (c.way == "local") || u.String() != c.want {
				t.Errorf("ParseAddress(%q): got local %t, %v, error %v, want %s %q",
					c.raw, local, u, err, c.way, c.want)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), "plain address") {
			t.Errorf(`ParseAddress(%q): got %v, error %v, want an error with "plain address"`, c.raw, u, err)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("ParseAddress(%q): got error %v, want one without the password", c.raw, err)
		}
	}
}
