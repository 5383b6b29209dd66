package loopback

import (
	"bufio"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func TestPaths(t *testing.T) {
	for target, want := range map[string]struct {
		token, rest string
		sound       bool
	}{
		"/T/v1/x":       {"T", "/v1/x", true},
		"/T":            {"T", "", true},
		"/T/":           {"T", "/", true},
		"/T?alt=sse":    {"T", "?alt=sse", true},
		"/T/x:y?a=b%20": {"T", "/x:y?a=b%20", true},
		"/T/..?a":       {"T", "/..?a", false},
		"/T/a/./b":      {"T", "/a/./b", false},
		"/T/%2e%2e/b":   {"T", "/%2e%2e/b", false},
		"/T//x":         {"T", "//x", false},
		"/T/..;/x":      {"T", "/..;/x", false},
		`/T/..\x`:       {"T", `/..\x`, false},
		"/T/?a=../..":   {"T", "/?a=../..", true},
		"/T/x#y":        {"T", "/x#y", false},
		"/T/x\x00":      {"T", "/x\x00", false},
		"//T/x":         {"", "/T/x", true},
		"/":             {"", "", true},
		"*":             {"", "", true},
		"http://h/T/x":  {"", "", true},
	} {
		token, rest := split(target)
		if token != want.token || rest != want.rest || sound(rest) != want.sound {
			t.Errorf("%q: token %q, rest %q, sound %v; want %+v", target, token, rest, sound(rest), want)
		}
	}
}

// Whatever a client asks for, the server is asked for its base path and what came
// after the token, byte for byte, or for nothing.
func FuzzPath(f *testing.F) {
	for _, seed := range []string{"/v1/x?a=b", "", "/..", "//h/x", "?x", "?", "/%2e%2e/x", "/a b", "/x:y", "/;a", "/\u00e4"} {
		f.Add(seed)
	}
	const token, base = "0123456789abcdef", "/base/v1"
	forwarder := &Forwarder{target: &url.URL{Scheme: "http", Host: "127.0.0.1:1", Path: base}}
	f.Fuzz(func(t *testing.T, rest string) {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET /" + token + rest + " HTTP/1.1\r\nHost: x\r\n\r\n")))
		if err != nil {
			return
		}
		got, tail := split(r.RequestURI)
		if got != token || !sound(tail) {
			return
		}
		var wire strings.Builder
		if err := forwarder.request(r, tail).Write(&wire); err != nil {
			t.Fatal(err)
		}
		line, _, _ := strings.Cut(wire.String(), "\r\n")
		if line != "GET "+base+tail+" HTTP/1.1" {
			t.Fatalf("%q is asked as %q", r.RequestURI, line)
		}
		asked, err := url.ParseRequestURI(base + tail)
		if err != nil || !strings.HasPrefix(asked.JoinPath().Path, base) {
			t.Fatalf("%q leaves the base path: %v, %v", tail, asked, err)
		}
	})
}
