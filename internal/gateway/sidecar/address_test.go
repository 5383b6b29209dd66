package sidecar

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func TestOverride(t *testing.T) {
	for _, c := range []struct {
		raw  string
		way  string
		want string // the address, or a part of the error
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

		{"", "", "plain address"},
		{"127.0.0.1:8080", "", "plain address"},
		{"localhost:8080", "", "plain address"},
		{"ftp://x.example", "", "plain address"},
		{"unix:///run/x.sock", "", "plain address"},
		{"https:proxy.example", "", "plain address"},
		{"https://", "", "neither a name"},
		{"https://:443", "", "neither a name"},
		{"https:///v1", "", "neither a name"},
		{"https://a..b", "", "neither a name"},
		{"https://me:hunter2@x.example", "", "user name or password"},
		{"https://me@x.example", "", "user name or password"},
		{"https://x.example/?key=hunter2", "", "plain address"},
		{"https://x.example/?", "", "plain address"},
		{"https://x.example/#hunter2", "", "plain address"},
		{"https://x.example/#", "", "plain address"},
		{"https://x.example/a%2fb", "", "plain address"},
		{"https://x.example/a/../b", "", "dotted"},
		{"https://x.example/a//b", "", "empty"},
		{"https://x.example:0", "", "port"},
		{"https://x.example:65536", "", "port"},
		{"https://x.example:", "", "port"},
		{"https://x.example:http", "", "plain address"},
		{"https://x.example /v1", "", "plain address"},
		{"https://x.example\n", "", "plain address"},
		{`https://x.example\@y.example`, "", "plain address"},
		{"https://ex\u00e4mple.example", "", "plain address"},
		{"http://0.0.0.0:8080", "", "127.0.0.1"},
		{"http://[::]:8080", "", "127.0.0.1"},
		{"http://169.254.169.254", "", "link-local"},
		{"http://[fe80::1]:80", "", "link-local"},
		{"http://[fe80::1%25eth0]:80", "", "plain address"},
		{"http://127.1:80", "", "neither a name"},
		{"http://2130706433", "", "neither a name"},
		{"http://0x7f.0.0.1", "", "neither a name"},
		{"http://0177.0.0.1", "", "neither a name"},
	} {
		u, local, err := Override("OPENAI_BASE_URL", c.raw)
		if c.way != "" {
			if err != nil || local != (c.way == "local") || u.String() != c.want {
				t.Errorf("%q: local %t %v, %v; want %q %q", c.raw, local, u, err, c.way, c.want)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "OPENAI_BASE_URL") {
			t.Errorf("%q: %v, error %v, want one with %q", c.raw, u, err, c.want)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: the error shows the password: %v", c.raw, err)
		}
	}
}

// What it finds is what a gateway takes, and never the same address in two forms.
func TestMachineAddrs(t *testing.T) {
	all, err := MachineAddrs()
	if err != nil || !slices.Contains(all, netip.MustParseAddr("127.0.0.1")) {
		t.Fatalf("%v, %v", all, err)
	}
	for _, a := range all {
		if a.Is4In6() || a.Zone() != "" {
			t.Error(a)
		}
	}
}
