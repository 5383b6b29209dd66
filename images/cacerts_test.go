package images

import (
	"bytes"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func cert(text string) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(text)}))
}

func key(text string) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte(text)}))
}

func writeCerts(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadCerts(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link") // as systems have them
	if err := os.Symlink(writeCerts(t, cert("a")), link); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ path, want, err string }{
		"one":         {writeCerts(t, cert("a")), cert("a"), ""},
		"with-a-key":  {writeCerts(t, key("secret")+cert("a")+"words\n"+cert("b")+key("x")), cert("a") + cert("b"), ""},
		"twice":       {writeCerts(t, cert("a")+cert("b")+cert("a")), cert("a") + cert("b"), ""},
		"link":        {link, cert("a"), ""},
		"key-alone":   {writeCerts(t, key("secret")), "", "no PEM certificate in"},
		"empty":       {writeCerts(t, ""), "", "no PEM certificate in"},
		"missing":     {"/nowhere", "", "no such file"},
		"a-directory": {t.TempDir(), "", "is a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readCerts(c.path)
			if string(got) != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("got %q, %v; want %q %q", got, err, c.want, c.err)
			}
		})
	}
}

func TestBundle(t *testing.T) {
	system, own, node, person := writeCerts(t, cert("system")), writeCerts(t, cert("own")), writeCerts(t, cert("node")), writeCerts(t, cert("person")+cert("system"))
	for name, c := range map[string]struct {
		env   map[string]string
		extra string
		usual []string
		want  string
		own   bool
		err   string
	}{
		"system":               {nil, "", []string{"/nowhere", system, own}, cert("system"), false, ""},
		"system and person":    {nil, person, []string{system}, cert("system") + cert("person"), true, ""},
		"environment replaces": {map[string]string{"SSL_CERT_FILE": own}, "", []string{system}, cert("own"), true, ""},
		"environment adds":     {map[string]string{"NODE_EXTRA_CA_CERTS": node}, "", []string{system}, cert("system") + cert("node"), true, ""},
		"node's is unreadable": {map[string]string{"NODE_EXTRA_CA_CERTS": "/nowhere"}, "", []string{system}, cert("system"), true, ""},
		"all":                  {map[string]string{"SSL_CERT_FILE": own, "NODE_EXTRA_CA_CERTS": node}, person, nil, cert("own") + cert("node") + cert("person") + cert("system"), true, ""},
		"person alone":         {nil, person, []string{"/nowhere"}, cert("person") + cert("system"), true, ""},
		"nothing":              {nil, "", []string{"/nowhere"}, "", false, "cannot find the system's CA certificates"},
		"bad environment":      {map[string]string{"SSL_CERT_FILE": "/nowhere"}, person, []string{system}, "", true, "SSL_CERT_FILE"},
		"bad person's":         {nil, "/nowhere", []string{system}, "", true, "/nowhere"},
		"too many":             {nil, writeCerts(t, cert(strings.Repeat("x", maxBundle))), []string{system}, "", true, "name a file with fewer"},
	} {
		t.Run(name, func(t *testing.T) {
			looksIn(t, c.usual...)
			f := CACerts{Env: func(name string) string { return c.env[name] }, Extra: c.extra}
			got, err := f.Bundle()
			if string(got) != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) || f.Own() != c.own {
				t.Errorf("got %q, %v, own %v; want %q %q %v", got, err, f.Own(), c.want, c.err, c.own)
			}
		})
	}
}

// looksIn replaces the list of the system's certificate files.
func looksIn(t *testing.T, places ...string) {
	was := systemCerts
	t.Cleanup(func() { systemCerts = was })
	systemCerts = places
}

// A TLS client can use the pool.
func TestPool(t *testing.T) {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	path := writeCerts(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
	looksIn(t, "/nowhere")
	env := func(string) string { return "" }
	pool, err := CACerts{env, path}.Pool()
	if err != nil {
		t.Fatal(err)
	}
	client := s.Client()
	client.Transport.(*http.Transport).TLSClientConfig.RootCAs = pool
	if _, err := client.Get(s.URL); err != nil {
		t.Error(err)
	}
	if _, err := (CACerts{env, writeCerts(t, cert("no DER"))}).Pool(); err == nil {
		t.Error("pool of an invalid certificate: got no error, want one")
	}
}

func FuzzOnlyCerts(f *testing.F) {
	f.Add([]byte(cert("a") + "x" + cert("b")))
	f.Add([]byte(key("a")))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got := onlyCerts(raw)
		if !bytes.Equal(onlyCerts(got), got) {
			t.Errorf("certificates filtered twice: got %q, want %q as after the first time", onlyCerts(got), got)
		}
		if bytes.Contains(got, []byte("PRIVATE KEY-----")) {
			t.Errorf("certificates: got %q, want no private key", got)
		}
	})
}
