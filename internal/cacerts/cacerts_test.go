package cacerts

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

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRead(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link") // as systems have them
	if err := os.Symlink(write(t, cert("a")), link); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ path, want, err string }{
		"one":         {write(t, cert("a")), cert("a"), ""},
		"with-a-key":  {write(t, key("secret")+cert("a")+"words\n"+cert("b")+key("x")), cert("a") + cert("b"), ""},
		"twice":       {write(t, cert("a")+cert("b")+cert("a")), cert("a") + cert("b"), ""},
		"link":        {link, cert("a"), ""},
		"key-alone":   {write(t, key("secret")), "", "no PEM certificate in"},
		"empty":       {write(t, ""), "", "no PEM certificate in"},
		"missing":     {"/nowhere", "", "no such file"},
		"a-directory": {t.TempDir(), "", "is a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Read(c.path)
			if string(got) != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("got %q, %v; want %q %q", got, err, c.want, c.err)
			}
		})
	}
}

func TestBundle(t *testing.T) {
	system, own, node, person := write(t, cert("system")), write(t, cert("own")), write(t, cert("node")), write(t, cert("person")+cert("system"))
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
		"too many":             {nil, write(t, cert(strings.Repeat("x", maxBundle))), []string{system}, "", true, "name a file with fewer"},
	} {
		t.Run(name, func(t *testing.T) {
			looksIn(t, c.usual...)
			f := Finder{Env: func(name string) string { return c.env[name] }, Extra: c.extra}
			got, err := f.Bundle()
			if string(got) != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) || f.Own() != c.own {
				t.Errorf("got %q, %v, own %v; want %q %q %v", got, err, f.Own(), c.want, c.err, c.own)
			}
		})
	}
}

// looksIn replaces the list of the system's certificate files.
func looksIn(t *testing.T, places ...string) {
	was := usual
	t.Cleanup(func() { usual = was })
	usual = places
}

// A TLS client can use the pool.
func TestPool(t *testing.T) {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	path := write(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
	looksIn(t, "/nowhere")
	env := func(string) string { return "" }
	pool, err := Finder{env, path}.Pool()
	if err != nil {
		t.Fatal(err)
	}
	client := s.Client()
	client.Transport.(*http.Transport).TLSClientConfig.RootCAs = pool
	if _, err := client.Get(s.URL); err != nil {
		t.Error(err)
	}
	if _, err := (Finder{env, write(t, cert("no DER"))}).Pool(); err == nil {
		t.Error("a pool of what is no certificate")
	}
}

func FuzzOnly(f *testing.F) {
	f.Add([]byte(cert("a") + "x" + cert("b")))
	f.Add([]byte(key("a")))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got := Only(raw)
		if !bytes.Equal(Only(got), got) {
			t.Errorf("%q is not stable", got)
		}
		if bytes.Contains(got, []byte("PRIVATE KEY-----")) {
			t.Errorf("a key got through: %q", got)
		}
	})
}
