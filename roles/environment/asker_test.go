package environment

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"abl/internal/config"
	"abl/internal/sandbox"
	"abl/internal/testing/sandboxtest"
	"abl/roles"
)

const pipHelp = `Usage:
  -r, --requirement <file>    Install from the given requirements file.
  -i, --index-url <url>       Base URL of the Python Package Index (default ADDRESS). This should point to a repository.
  --extra-index-url <url>     Extra URLs of package indexes to use in addition to --index-url. Should follow the same rules as --index-url.
`

func help(address string) string { return strings.Replace(pipHelp, "ADDRESS", address, 1) }

func TestParse(t *testing.T) {
	for _, c := range []struct{ word, says, hosts, err string }{
		{"npm", "https://registry.example/\n", "registry.example:443", ""},
		{"npm", "https://Me:secret@Registry.Example:8443/npm/\n", "registry.example:8443", ""},
		{"npm", "http://registry.example/\n", "", "npm's registry at registry.example is not https"},
		{"npm", "https://10.0.0.1/\n", "", "npm's registry is the bare address 10.0.0.1"},
		{"npm", "https://[fd00::1]:443/\n", "", "npm's registry is the bare address fd00::1"},
		{"npm", "undefined\n", "", "npm's registry is no address"},
		{"npm", "", "", "npm's registry is no address"},
		{"npm", "https://a.example/\nhttps://b.example/\n", "", "npm's registry is no address"},
		{"npm", "https://a b/\n", "", "npm's registry is no address"},
		{"npm", "https:///x\n", "", "npm's registry is no address"},
		{"npm", "https://*.example/\n", "", "has a host or a port that could not be read"},
		{"npm", "https://\u00e4.example/\n", "", "has a host or a port that could not be read"},
		{"npm", "https://a.example:0/\n", "", "has a host or a port that could not be read"},
		{"npm", "https://a.example:99999/\n", "", "has a host or a port that could not be read"},
		{"npm", "https://" + strings.Repeat("a.", 200) + "example/\n", "", "has a host or a port that could not be read"},
		{"npm", "https://x\x1b[2J.example/\n", "", "npm's registry is no address"},
		{"pypi", help("https://i.example/simple"), "i.example:443", ""},
		{"pypi", help("https://u:****@index.example/simple"), "index.example:443", ""},
		{"pypi", help("https://i.example/simple") + "global.extra-index-url='\\nhttps://e1.example/x\\nhttps://e2.example:99/'\nglobal.timeout='60'\n", "e1.example:443 e2.example:99 i.example:443", ""},
		{"pypi", help("https://i.example/") + ":env:.extra-index-url='https://e1.example/ https://e2.example/'\n", "e1.example:443 e2.example:443 i.example:443", ""},
		{"pypi", help("http://index.example/simple"), "", "pip's index at index.example is not https"},
		{"pypi", help("https://i.example/") + "global.extra-index-url='http://e.example/'\n", "", "pip's index at e.example is not https"},
		{"pypi", help("/srv/wheels"), "", "pip's index is no address"},
		{"pypi", "some other help\n", "", "pip does not say which index it uses"},
		{"pypi", "", "", "pip does not say which index it uses"},
		{"go", "https://proxy.example\nsum.example\n", "proxy.example:443 sum.example:443", ""},
		{"go", "https://proxy.example,direct\nsum.example\n", "proxy.example:443 sum.example:443", ""},
		{"go", "https://a.example|https://b.example:8443/x,off\noff\n", "a.example:443 b.example:8443", ""},
		{"go", "file:///cache,https://a.example\n\n", "a.example:443", ""},
		{"go", "https://a.example\nsum.example+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8 https://mirror.example/sum\n", "a.example:443 mirror.example:443", ""},
		{"go", "https://a.example\nsum.example+033de0ae+Ac4zctda0e5eza/HJyk9SxEdh+s3Ux18htTTAD8OuAn8\n", "a.example:443 sum.example:443", ""},
		{"go", "direct\nsum.example\n", "", "GOPROXY names no proxy"},
		{"go", "off\n\n", "", "GOPROXY names no proxy"},
		{"go", "\n", "", "GOPROXY names no proxy"},
		{"go", "http://a.example\n\n", "", "Go's module proxy at a.example is not https"},
		{"go", "https://a.example\nhttp://x\n", "", "Go's checksum database"},
	} {
		hosts, err := tools[c.word].hosts(c.says)
		slices.Sort(hosts)
		got := strings.Join(hosts, " ")
		if got != c.hosts || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s says %q: %q, %v; want %q, %q", c.word, c.says, got, err, c.hosts, c.err)
		}
		if err != nil && (strings.Contains(err.Error(), "secret") || strings.ContainsRune(err.Error(), '\x1b')) {
			t.Errorf("%s says %q: the error shows too much: %q", c.word, c.says, err)
		}
	}
}

// Whatever an image says: hosts are hosts.
func FuzzParse(f *testing.F) {
	f.Add("https://a.example/\nsum.example\n")
	f.Add(help("https://i.example/simple") + "global.extra-index-url='\\nhttps://e1.example/x'\n")
	f.Fuzz(func(t *testing.T, says string) {
		for _, tool := range tools {
			hosts, err := tool.hosts(says)
			if err != nil && len(hosts) > 0 {
				t.Errorf("%q: hosts %q and error %v", says, hosts, err)
			}
			for _, host := range hosts {
				if !config.Allowable(host) || !strings.Contains(host, ":") {
					t.Errorf("%q: host %q", says, host)
				}
			}
		}
	})
}

// image is an engine whose image has tools that say this, by the box's name.
func image(says map[string]string) *sandboxtest.Engine {
	e := &sandboxtest.Engine{Sync: true, Scripts: map[string]sandboxtest.Script{}}
	for _, word := range []string{"npm", "pypi", "go"} {
		words, there := says[word]
		e.Scripts["abl-id-ask-"+word] = func(b sandbox.Box) sandbox.Exit {
			switch {
			case !there:
				return sandbox.Exit{Code: 127}
			case words == "":
				return sandbox.Exit{Code: 1}
			}
			e.Print(b.Name, words)
			return sandbox.Exit{}
		}
	}
	return e
}

func resolve(ctx context.Context, e sandbox.Engine, allow ...string) (hosts, notes []string, err error) {
	return allowedHosts(ctx, &roles.Boxes{Engine: e, ID: "id", UID: 1000, GID: 1000}, Access{Place: "builder", Image: "abl/run-x"}, allow)
}

func TestResolve(t *testing.T) {
	e := image(map[string]string{"npm": "https://registry.example/\n", "go": "https://proxy.example,direct\noff\n"})
	got, notes, err := resolve(t.Context(), e, "z.example:8443", "npm", "a.example", "registry.example", "go")
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"a.example:443", "proxy.example:443", "registry.example:443", "z.example:8443"}; !slices.Equal(got, want) || len(notes) != 1 {
		t.Errorf("%+v, want %q", got, want)
	}
	if left := e.Left(); len(left) > 0 {
		t.Errorf("left on the engine: %q", left)
	}
	e.Forget()
	if got, _, err := resolve(t.Context(), e, "a.example"); err != nil || len(got) != 1 || e.Journal() != "" {
		t.Errorf("%+v, %v; asked the engine for %q", got, err, e.Journal())
	}
	if got, _, err := resolve(t.Context(), e); err != nil || len(got) != 0 {
		t.Errorf("nothing allowed: %+v, %v", got, err)
	}
}

func TestResolveRefuses(t *testing.T) {
	many := strings.Repeat(" https://h.example", mostHosts)
	for want, says := range map[string]map[string]string{
		"image abl/run-x has no pip: add it by toolchain or by images.builder.dockerfile, or name the host itself": {},
		"pip of image abl/run-x ended with code 1":                       {"pypi": ""},
		"in image abl/run-x pip's index at i.example is not https":       {"pypi": help("http://i.example/")},
		"in image abl/run-x it names 17 hosts: name those that you want": {"pypi": help("https://i.example/") + "g.extra-index-url='" + many + "'\n"},
	} {
		e := image(says)
		got, _, err := resolve(t.Context(), e, "a.example", "pypi")
		if err == nil || !strings.Contains(err.Error(), want) || len(got) > 0 {
			t.Errorf("%+v, %v; want %q", got, err, want)
		}
		if left := e.Left(); len(left) > 0 {
			t.Errorf("left on the engine: %q", left)
		}
	}
}

// The person is told of the Dockerfile of the very image that lacks a tool.
func TestResolveNamesTheDockerfile(t *testing.T) {
	_, _, err := allowedHosts(t.Context(), &roles.Boxes{Engine: image(nil), ID: "id", UID: 1, GID: 1}, Access{Image: "i", Dockerfile: "images.app.dockerfile"}, []string{"npm"})
	if err == nil || !strings.Contains(err.Error(), "add it by toolchain or by images.app.dockerfile,") {
		t.Errorf("error %v", err)
	}
}

// A tool that never answers is given up, and its box removed.
func TestResolveGivesUp(t *testing.T) {
	e := &sandboxtest.Engine{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := resolve(ctx, e, "npm"); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if left := e.Left(); len(left) > 0 {
		t.Errorf("left on the engine: %q", left)
	}
	lost := errors.New("engine lost")
	for _, method := range []string{"Create", "Prove", "Start", "Wait", "Logs"} {
		e := image(map[string]string{"npm": "https://registry.example/\n"})
		e.Fail(method, 1, lost)
		if got, _, err := resolve(t.Context(), e, "npm"); !errors.Is(err, lost) || len(got) > 0 {
			t.Errorf("%s: %+v, %v", method, got, err)
		}
		if left := e.Left(); len(left) > 0 {
			t.Errorf("%s: left on the engine: %q", method, left)
		}
	}
}

// What asks has no network and sees nothing of the project.
func TestBoxThatAsks(t *testing.T) {
	e := image(nil)
	var box sandbox.Box
	e.Scripts["abl-id-ask-npm"] = func(b sandbox.Box) sandbox.Exit { box = b; return sandbox.Exit{Code: 127} }
	_, _, _ = resolve(t.Context(), e, "npm")
	if box.Image != "abl/run-x" || len(box.Mounts) > 0 || box.Reach.Join != "" || len(box.Reach.Endpoints) > 0 || box.User != "1000:1000" {
		t.Errorf("%+v", box)
	}
}

func TestEnv(t *testing.T) {
	got := map[string]string{}
	for _, kv := range slices.Concat(proxyEnv("http://abl:T@gateway:8080", "gateway", "app"), certEnv("/abl/in/ca.pem")) {
		k, v, _ := strings.Cut(kv, "=")
		if _, twice := got[k]; twice {
			t.Errorf("%s is there twice", k)
		}
		got[k] = v
	}
	for k, want := range map[string]string{
		"HTTPS_PROXY": "http://abl:T@gateway:8080", "https_proxy": "http://abl:T@gateway:8080", "http_proxy": "http://abl:T@gateway:8080",
		"NO_PROXY": "localhost,.localhost,127.0.0.1,::1,[::1],0.0.0.0,gateway,app", "no_proxy": "localhost,.localhost,127.0.0.1,::1,[::1],0.0.0.0,gateway,app",
		"NODE_EXTRA_CA_CERTS": "/abl/in/ca.pem", "SSL_CERT_FILE": "/abl/in/ca.pem", "PIP_CERT": "/abl/in/ca.pem",
	} {
		if got[k] != want {
			t.Errorf("%s=%q, want %q", k, got[k], want)
		}
	}
}

// A word whose tool cannot be asked stands for hosts that are known, and nothing is started.
func TestResolveFixed(t *testing.T) {
	hosts, notes, err := allowedHosts(t.Context(), nil, Access{}, []string{"maven", "crates", "maven"})
	if got := strings.Join(hosts, " "); err != nil || len(notes) > 0 || got != "index.crates.io:443 repo.maven.apache.org:443 static.crates.io:443" {
		t.Errorf("%s, %q, %v", got, notes, err)
	}
}
