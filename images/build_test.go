package images

import (
	"cmp"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func environ(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

// also is an environment with further variables.
func also(env func(string) string, pairs ...string) func(string) string {
	more := environ(pairs...)
	return func(name string) string { return cmp.Or(more(name), env(name)) }
}

func TestProxyReachesBuildsAsArguments(t *testing.T) {
	e := newFake()
	m := testMaker(t, e)
	m.Env = also(m.Env, "HTTPS_PROXY", "http://proxy.example:3128", "no_proxy", "a.example")
	ref, err := m.Ensure(t.Context(), Want{Agent: Tools})
	if err != nil {
		t.Fatal(err)
	}
	args := e.args[e.images[ref][labelBase]]
	for name, want := range map[string]string{
		"HTTPS_PROXY": "http://proxy.example:3128", "https_proxy": "http://proxy.example:3128",
		"NO_PROXY": "a.example", "no_proxy": "a.example", "HTTP_PROXY": "",
	} {
		if args[name] != want {
			t.Errorf("%s=%q, want %q", name, args[name], want)
		}
	}
	bare := newFake()
	plain, err := testMaker(t, bare).Ensure(t.Context(), Want{Agent: Tools})
	if err != nil || plain != ref {
		t.Errorf("the proxy changed the tag: %s, %s, %v", ref, plain, err)
	}
}

func TestNPMRegistry(t *testing.T) {
	for name, want := range map[string]string{"": "https://registry.npmjs.org", "npm_config_registry": "http://a.example/npm", "NPM_CONFIG_REGISTRY": "http://a.example/npm"} {
		e := newFake()
		m := testMaker(t, e)
		m.Env = also(m.Env, name, "http://a.example/npm/")
		ref, err := m.Ensure(t.Context(), Want{Agent: Tools})
		if err != nil {
			t.Fatal(err)
		}
		if got := e.args[e.parent(ref)]["NPM_REGISTRY"]; got != want {
			t.Errorf("%q: packages from %q, want %q", name, got, want)
		}
	}
}

func TestProxyIsLocal(t *testing.T) {
	for proxy, want := range map[string]bool{
		"": false, "http://proxy.example:1": false, "http://127.0.0.1:3128": true, "localhost:3128": true,
		"http://[::1]:1": true, "10.0.0.1:8080": false, "://": false,
	} {
		if got := proxyIsLocal(environ("https_proxy", proxy)); got != want {
			t.Errorf("proxy %q: local %v, want %v", proxy, got, want)
		}
	}
}

func testCert(text string) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(text)}))
}

func TestCertificates(t *testing.T) {
	dir := t.TempDir()
	key := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("secret")}))
	good, other, bad := filepath.Join(dir, "good"), filepath.Join(dir, "other"), filepath.Join(dir, "bad")
	write(t, good, "comment\n"+testCert("one")+key+testCert("two"))
	write(t, other, testCert("three"))
	write(t, bad, key)
	for name, c := range map[string]struct {
		flag      string
		env       []string
		want, err string
		said      string
	}{
		"none":               {},
		"flag":               {flag: good, env: []string{"ABL_CA_CERT", other}, want: testCert("one") + testCert("two")},
		"environment":        {env: []string{"ABL_CA_CERT", other, "SSL_CERT_FILE", good}, want: testCert("three")},
		"usual name":         {env: []string{"NODE_EXTRA_CA_CERTS", other}, want: testCert("three"), said: "NODE_EXTRA_CA_CERTS"},
		"second usual name":  {env: []string{"NODE_EXTRA_CA_CERTS", bad, "SSL_CERT_FILE", other}, want: testCert("three"), said: "not trusting"},
		"key alone":          {flag: bad, err: "no PEM certificate"},
		"missing":            {flag: filepath.Join(dir, "away"), err: "--ca-cert"},
		"missing by default": {env: []string{"SSL_CERT_FILE", filepath.Join(dir, "away")}, said: "not trusting"},
	} {
		var said strings.Builder
		m := &Maker{CACert: c.flag, Env: environ(c.env...), Out: func(s string) { said.WriteString(s) }}
		got, err := m.certificates()
		if string(got) != c.want || !strings.Contains(said.String(), c.said) {
			t.Errorf("%s: %q, said %q", name, got, said.String())
		}
		if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: error %v, want %q", name, err, c.err)
		}
	}
}

func TestCertificatesEnterTheStageAndNeitherTagNorTop(t *testing.T) {
	e, bare := newFake(), newFake()
	m := testMaker(t, e)
	m.CACert = filepath.Join(t.TempDir(), "ca")
	write(t, m.CACert, testCert("authority"))
	ref, err := m.Ensure(t.Context(), Want{Agent: "gemini"})
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := testMaker(t, bare).Ensure(t.Context(), Want{Agent: "gemini"}); err != nil || plain != ref {
		t.Errorf("the certificate changed the tag: %s, %s, %v", ref, plain, err)
	}
	for built, files := range e.contexts {
		certs, has := files["ca.crt"]
		stage := strings.HasPrefix(built, "abl/tools") || strings.HasPrefix(built, "abl/gemini")
		if has != stage || stage && certs != testCert("authority") {
			t.Errorf("%s: certificates %q", built, certs)
		}
	}
}

// Of an embedded Dockerfile's stages one alone sees the certificates, it is removed by its
// label, and the last one takes nothing from where it downloaded to.
func TestOnlyOneStageSeesTheCertificates(t *testing.T) {
	for _, name := range Agents() {
		text, err := contexts.ReadFile("context/" + name + "/Dockerfile")
		if err != nil {
			t.Fatal(err)
		}
		stages := strings.Split(string(text), "\nFROM ")
		fetch, last := stages[len(stages)-2], stages[len(stages)-1]
		if strings.Count(string(text), "ca.crt") != 1 || !strings.Contains(fetch, "COPY ca.crt ") || !strings.Contains(fetch, "\nLABEL abl.stage=") {
			t.Errorf("%s: want ca.crt in the stage before the last one alone, with its label:\n%s", name, text)
		}
		if strings.Contains(last, "/fetch ") || strings.Contains(last, "COPY . ") {
			t.Errorf("%s: the last stage takes the certificates", name)
		}
	}
}

func TestOutput(t *testing.T) {
	var said []string
	m := &Maker{Out: func(s string) { said = append(said, s) }}
	o := output{name: "tools", say: m.say}
	o.line("Step 3/9 : RUN apt-get\tupdate")
	for range 30 {
		o.line("\x1b[31mred\x1b[0m \xff " + strings.Repeat("é", 300))
	}
	o.line("")
	if len(said) != 1 || said[0] != "tools: step 3/9 RUN apt-get update" {
		t.Errorf("said %q", said)
	}
	if len(o.tail) != tailLines {
		t.Errorf("%d lines kept, want %d", len(o.tail), tailLines)
	}
	if last := o.tail[tailLines-1]; strings.Contains(last, "\x1b") || len([]rune(last)) != lineRunes {
		t.Errorf("last line %q", last)
	}
}

func TestHints(t *testing.T) {
	for line, want := range map[string]string{
		"npm error code SELF_SIGNED_CERT_IN_CHAIN": "--ca-cert FILE",
		"Err: Temporary failure resolving 'x'":     "HTTPS_PROXY",
		"write /x: no space left on device":        "disk is full",
		"npm error 404":                            "",
	} {
		got := (&BuildError{Tail: []string{line}, cause: os.ErrInvalid}).Error()
		if want == "" && !strings.HasSuffix(got, line) || !strings.Contains(got, want) {
			t.Errorf("%q: hint %q, want %q", line, got, want)
		}
	}
}
