package environment

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"abl/internal/config"
	"abl/internal/testing/sandboxtest"
	"abl/roles/boundary"
)

func TestAllowedHosts(t *testing.T) {
	got, private := allowedHosts([]config.Reachable{"z.example:8443 private", "npm", "a.example", "registry.npmjs.org", "crates"})
	want := []string{"a.example:443", "index.crates.io:443", "registry.npmjs.org:443", "static.crates.io:443", "z.example:8443"}
	if !slices.Equal(got, want) || !slices.Equal(private, []string{"z.example:8443"}) {
		t.Errorf("got hosts %q, private %q, want %q, private %q", got, private, want, []string{"z.example:8443"})
	}
	if got, private := allowedHosts(nil); len(got)+len(private) > 0 {
		t.Errorf("hosts of no entries: got %q, private %q, want none", got, private)
	}
}

// Each registry name that config accepts has hosts, and config accepts these hosts.
func TestRegistriesAreKnown(t *testing.T) {
	if words := slices.Sorted(maps.Keys(registries)); !slices.Equal(words, config.Registries) {
		t.Errorf("registries with hosts: got %q, want %q", words, config.Registries)
	}
	for word, hosts := range registries {
		for _, host := range hosts {
			if !config.Allowable(host) || !strings.HasSuffix(host, ":443") {
				t.Errorf("host of %s: got %q, want an allowed one with the port 443", word, host)
			}
		}
	}
}

func TestEnv(t *testing.T) {
	got := map[string]string{}
	for _, kv := range slices.Concat(proxyEnv("T"), certEnv("/abl/in/ca.pem")) {
		k, v, _ := strings.Cut(kv, "=")
		if _, twice := got[k]; twice {
			t.Errorf("variable %s: got it twice, want it once", k)
		}
		got[k] = v
	}
	for k, want := range map[string]string{
		"HTTPS_PROXY": "http://abl:T@gateway:8080", "https_proxy": "http://abl:T@gateway:8080", "http_proxy": "http://abl:T@gateway:8080",
		"NO_PROXY": "localhost,.localhost,127.0.0.1,::1,[::1],0.0.0.0,gateway,app", "no_proxy": "localhost,.localhost,127.0.0.1,::1,[::1],0.0.0.0,gateway,app",
		"ABL_PROXY_TOKEN": "T",
		"GRADLE_OPTS": "-Djdk.http.auth.tunneling.disabledSchemes=" +
			" -Dhttp.proxyHost=gateway -Dhttp.proxyPort=8080 -Dhttp.proxyUser=abl -Dhttp.proxyPassword=T" +
			" -Dhttps.proxyHost=gateway -Dhttps.proxyPort=8080 -Dhttps.proxyUser=abl -Dhttps.proxyPassword=T",
		"NODE_EXTRA_CA_CERTS": "/abl/in/ca.pem", "SSL_CERT_FILE": "/abl/in/ca.pem", "PIP_CERT": "/abl/in/ca.pem",
	} {
		if got[k] != want {
			t.Errorf("variable %s: got %q, want %q", k, got[k], want)
		}
	}
}

// TestAllowKeepsFromTheEnginesMachine checks that a gateway for tools gets the addresses of the engine's
// machine, to which it opens no tunnel.
func TestAllowKeepsFromTheEnginesMachine(t *testing.T) {
	conf := config.Default()
	conf.Network.Allow = []config.Reachable{"npm"}
	containers := &boundary.Containers{Engine: &sandboxtest.Engine{}, ID: "id", UID: 1000, GID: 1000, Helper: "helper"}
	e, g := &Environment{Options: Options{Conf: &config.Loaded{Config: conf}}, Containers: containers}, &Gate{}
	if err := e.allow(t.Context(), g, nil); err != nil {
		t.Fatal(err)
	}
	if want := netip.MustParseAddr("192.0.2.1"); !slices.Contains(g.Setup.Inside, want) {
		t.Errorf("got addresses %v, want %s", g.Setup.Inside, want)
	}
}
