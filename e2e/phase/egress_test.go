package phase

import (
	"net/url"
	"strings"
	"testing"

	"abl/internal/state"
	"abl/internal/testing/lab"
)

// The Builder installs a package from npm's registry through the gateway. Other hosts are out of
// reach, and abl lists them at the call's end.
func TestBuilderReachesOnlyItsRegistry(t *testing.T) {
	lab.Long(t)
	lab.Egress(t)
	p := newProject(t, nodeApp+"network: {allow: [npm]}\n",
		builds(write("server.mjs", server),
			must(0, "npm install --no-audit --no-fund is-number@7.0.0"),
			must(0, "test -f node_modules/is-number/index.js"),
			run("curl -sS --max-time 10 https://example.org/"),
			run("curl -sS --max-time 10 https://gateway:8080/"),
			run("curl -sS --max-time 10 http://example.org/"),
			run("curl -sS --noproxy '*' --max-time 3 \"$(npm config get registry)\""), run("npm config get registry")),
		verifies(must(1, "env | grep -i proxy"), must(2, "getent hosts gateway")))
	r := p.Must(0, "phase", "1", "--json")
	all := events(t, r)
	var notes []string
	for _, e := range of(all, state.Note) {
		notes = append(notes, e.Text)
	}
	wants(t, "the notes", strings.Join(notes, "\n"), "example.org:443", "allow")
	builder := printed(p, "p1-build-1.1")
	wants(t, "the Builder's output", builder, "added 1 package", "CONNECT tunnel failed, response 403",
		"Could not resolve host")
	lines := strings.Split(strings.TrimSpace(builder), "\n")
	u, err := url.Parse(lines[len(lines)-1])
	if err != nil || u.Hostname() == "" {
		t.Fatalf("the registry of npm: got %q, %v, want a URL", lines[len(lines)-1], err)
	}
	_, prompt, _ := strings.Cut(promptOf(p, "p1-build-1.1"), "## This call")
	wants(t, "the Builder's prompt", prompt, u.Hostname())
	lacks(t, "the Verifier's prompt", promptOf(p, "p1-verify-1.1"), u.Hostname())
	checkNothingLeft(p)
}
