package images

import (
	"cmp"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"abl/internal/wording"
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

// also returns an environment with additional variables.
func also(env func(string) string, pairs ...string) func(string) string {
	more := environ(pairs...)
	return func(name string) string { return cmp.Or(more(name), env(name)) }
}

func TestBuildsGetTheProxyAsArguments(t *testing.T) {
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
			t.Errorf("got %s=%q, want %q", name, args[name], want)
		}
	}
	bare := newFake()
	plain, err := testMaker(t, bare).Ensure(t.Context(), Want{Agent: Tools})
	if err != nil || plain != ref {
		t.Errorf("the proxy changed the tag: got %s, want %s, error %v", ref, plain, err)
	}
}

func TestNPMRegistry(t *testing.T) {
	for name, want := range map[string]string{
		"":                    "https://registry.npmjs.org",
		"npm_config_registry": "http://a.example/npm",
		"NPM_CONFIG_REGISTRY": "http://a.example/npm",
	} {
		t.Run(name, func(t *testing.T) {
			e := newFake()
			m := testMaker(t, e)
			m.Env = also(m.Env, name, "http://a.example/npm/")
			ref, err := m.Ensure(t.Context(), Want{Agent: Tools})
			if err != nil {
				t.Fatal(err)
			}
			if got := e.args[e.parent(ref)]["NPM_REGISTRY"]; got != want {
				t.Errorf("%q: got registry %q, want %q", name, got, want)
			}
		})
	}
}

func TestProxyIsLocal(t *testing.T) {
	for proxy, want := range map[string]bool{
		"": false, "http://proxy.example:1": false, "http://127.0.0.1:3128": true, "localhost:3128": true,
		"http://[::1]:1": true, "10.0.0.1:8080": false, "://": false,
	} {
		t.Run(proxy, func(t *testing.T) {
			if got := proxyIsLocal(environ("https_proxy", proxy)); got != want {
				t.Errorf("proxy %q: got local %v, want %v", proxy, got, want)
			}
		})
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
		"none":        {},
		"flag":        {flag: good, env: []string{"ABL_CA_CERT", other}, want: testCert("one") + testCert("two")},
		"environment": {env: []string{"ABL_CA_CERT", other, "SSL_CERT_FILE", good}, want: testCert("three")},
		"usual-name": {
			env:  []string{"NODE_EXTRA_CA_CERTS", other},
			want: testCert("three"),
			said: "NODE_EXTRA_CA_CERTS",
		},
		"second-usual-name": {
			env:  []string{"NODE_EXTRA_CA_CERTS", bad, "SSL_CERT_FILE", other},
			want: testCert("three"),
			said: "ignored the certificates",
		},
		"key-alone":          {flag: bad, err: "no PEM certificate"},
		"missing":            {flag: filepath.Join(dir, "away"), err: "--ca-cert"},
		"missing-by-default": {env: []string{"SSL_CERT_FILE", filepath.Join(dir, "away")}, said: "ignored the certificates"},
	} {
		t.Run(name, func(t *testing.T) {
			var said strings.Builder
			m := &Maker{CACert: c.flag, Env: environ(c.env...), Out: func(s string) { said.WriteString(s) }}
			got, err := m.certificates()
			if string(got) != c.want || !strings.Contains(said.String(), c.said) {
				t.Errorf("got %q and messages %q, want %q and %q", got, said.String(), c.want, c.said)
			}
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("certificates: got error %v, want %q", err, c.err)
			}
		})
	}
}

func TestCertificatesStayInTheDownloadStage(t *testing.T) {
	e, bare := newFake(), newFake()
	m := testMaker(t, e)
	m.CACert = filepath.Join(t.TempDir(), "ca")
	write(t, m.CACert, testCert("authority"))
	ref, err := m.Ensure(t.Context(), Want{Agent: "gemini"})
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := testMaker(t, bare).Ensure(t.Context(), Want{Agent: "gemini"}); err != nil || plain != ref {
		t.Errorf("the certificate changed the tag: got %s, want %s, error %v", ref, plain, err)
	}
	for built, files := range e.contexts {
		certs, has := files["ca.crt"]
		stage := strings.HasPrefix(built, "abl/tools") || strings.HasPrefix(built, "abl/gemini")
		if has != stage || stage && certs != testCert("authority") {
			t.Errorf("ca.crt of %s: got %q, present %v, want present %v, with the given certificate if present",
				built, certs, has, stage)
		}
	}
}

// The steps of a project's Dockerfile trust the certificates in its stages on abl's image only. The
// name of the image does not depend on them.
func TestProjectDockerfileTrustsTheCertificates(t *testing.T) {
	own := filepath.Join(t.TempDir(), "builder.Dockerfile")
	write(t, own, "ARG ABL_IMAGE\nFROM ${ABL_IMAGE} AS a\nRUN true\nFROM golang:1 AS b\nFROM a")
	e, bare := newFake(), newFake()
	m := testMaker(t, e)
	m.CACert = filepath.Join(t.TempDir(), "ca")
	write(t, m.CACert, testCert("authority"))
	ref, err := m.Ensure(t.Context(), Want{Agent: Tools, Dockerfile: own})
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := testMaker(t, bare).Ensure(t.Context(), Want{Agent: Tools, Dockerfile: own}); err != nil || plain != ref {
		t.Errorf("the certificate changed the tag: got %s, want %s, error %v", ref, plain, err)
	}
	project := func(e *fakeEngine) map[string]string {
		for built, files := range e.contexts {
			if strings.HasPrefix(built, "abl/project") {
				return files
			}
		}
		return nil
	}
	files := project(e)
	if !strings.Contains(files[caFile], testCert("authority")) {
		t.Errorf("got certificates %q, want %q in them", files[caFile], testCert("authority"))
	}
	first, rest, _ := strings.Cut(files["Dockerfile"], "RUN true")
	want := "FROM ${ABL_IMAGE} AS a\n\nCOPY abl-ca.crt /etc/ssl/\nARG SSL_CERT_FILE=/etc/ssl/abl-ca.crt\n"
	if !strings.Contains(first, want) || strings.Contains(rest, caFile) {
		t.Errorf("got the Dockerfile\n%s\nwant %q in its first stage only", files["Dockerfile"], want)
	}
	if plain := project(bare); strings.Contains(plain["Dockerfile"], caFile) || plain[caFile] != "" {
		t.Errorf("got %v without certificates, want none of %s", plain, caFile)
	}
}

// In each embedded Dockerfile only one stage sees the certificates. The stage has a label for its
// removal, and the last stage copies nothing from the download folder.
func TestOnlyOneStageSeesTheCertificates(t *testing.T) {
	for _, name := range Agents() {
		text, err := contexts.ReadFile("context/" + name + "/Dockerfile")
		if err != nil {
			t.Fatal(err)
		}
		stages := strings.Split(string(text), "\nFROM ")
		fetch, last := stages[len(stages)-2], stages[len(stages)-1]
		if strings.Count(string(text), "ca.crt") != 1 || !strings.Contains(fetch, "COPY ca.crt ") ||
			!strings.Contains(fetch, "\nLABEL abl.stage=") {
			t.Errorf("Dockerfile of %s: got\n%s\nwant ca.crt once, in the labelled stage before the last one",
				name, text)
		}
		if strings.Contains(last, "/fetch ") || strings.Contains(last, "COPY . ") {
			t.Errorf("last stage of %s: got\n%s\nwant no copy of the certificates", name, last)
		}
	}
}

// A step is reported while it runs, and with its duration when it has ended, unless that is less
// than a second. Of the current step's output all lines are kept, up to a limit, and of earlier
// steps none.
func TestOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said, live []string
		begun := time.Now()
		m := &Maker{Out: func(s string) { said = append(said, s) }, Progress: func(since time.Time, what string) {
			live = append(live, fmt.Sprintf("%s at %s", what, since.Sub(begun)))
		}}
		o := output{name: "tools", m: m}
		o.line("Step 1/3 : ARG X")
		o.line("Step 2/3 : RUN apt-get\tupdate && " + strings.Repeat("x", 300))
		o.line("of the second")
		time.Sleep(1500 * time.Millisecond)
		o.line("Step 3/3 : RUN \x1b[31mnpm")
		o.line("Step by step")
		for range 2 * mostLines {
			o.line("\x1b[31mred\x1b[0m \xff " + strings.Repeat("é", 500))
		}
		o.line("")
		o.line("the end")
		cut := wording.Cut("RUN apt-get update && "+strings.Repeat("x", 300), stepRunes)
		if want := []string{"tools: step 2/3 " + cut + " 1.5s"}; !slices.Equal(said, want) {
			t.Errorf("got output %q, want %q", said, want)
		}
		if want := []string{
			"tools: step 1/3 ARG X at 0s", "tools: step 2/3 " + cut + " at 0s",
			`tools: step 3/3 RUN \x1b[31mnpm at 1.5s`,
		}; !slices.Equal(live, want) {
			t.Errorf("got progress %q, want %q", live, want)
		}
		if len(o.lines) != mostLines || o.lines[mostLines-1] != "the end" || slices.Contains(o.lines, "of the second") {
			t.Errorf("got %d lines, the last one %q, want %d of the third step",
				len(o.lines), o.lines[len(o.lines)-1], mostLines)
		}
		if line := o.lines[0]; strings.Contains(line, "\x1b") || len([]rune(line)) != lineRunes {
			t.Errorf("first line: got %q, want %d runes without an escape character", line, lineRunes)
		}
	})
}

// The whole output of a failed step is shown if there is no file for it. Otherwise its end is
// shown with the name of the file, which has the whole output.
func TestFailedStepIsShownInFull(t *testing.T) {
	printed := []string{"Step 2/2 : RUN make"}
	for i := range 50 {
		printed = append(printed, fmt.Sprintf("line %d", i))
	}
	for name, c := range map[string]struct {
		file  string
		shown int
	}{"no place": {"", 51}, "a file": {".abl/logs/build-holder.log", tailLines}} {
		t.Run(name, func(t *testing.T) {
			e := newFake()
			e.fail = func(string, string) []string { return printed }
			m := testMaker(t, e)
			var said []string
			m.Out = func(s string) { said = append(said, s) }
			kept := ""
			if c.file != "" {
				m.Keep = func(_, output string) string {
					kept = output
					return c.file
				}
			}
			_, err := m.Holder(t.Context())
			if len(said) != c.shown || said[len(said)-1] != "holder | line 49" {
				t.Errorf("got output %q, want %d lines up to the last one", said, c.shown)
			}
			if want := strings.Join(printed, "\n") + "\n"; c.file != "" && kept != want {
				t.Errorf("got file %q, want %q", kept, want)
			}
			if err == nil || !strings.Contains(err.Error(), "| line 45\n") || strings.Contains(err.Error(), "line 44") ||
				!strings.Contains(err.Error(), c.file) {
				t.Errorf("got error %v, want the last five lines and %q", err, c.file)
			}
		})
	}
}

func TestHints(t *testing.T) {
	for line, want := range map[string]string{
		"npm error code SELF_SIGNED_CERT_IN_CHAIN": "--ca-cert or ABL_CA_CERT",
		"Err: Temporary failure resolving 'x'":     "HTTPS_PROXY",
		"write /x: no space left on device":        "disk is full",
		"npm error 404":                            "",
	} {
		t.Run(line, func(t *testing.T) {
			got := (&BuildError{Lines: []string{line}, cause: os.ErrInvalid}).Error()
			if want == "" && !strings.HasSuffix(got, line) || !strings.Contains(got, want) {
				t.Errorf("%q: got hint %q, want %q", line, got, want)
			}
		})
	}
}
