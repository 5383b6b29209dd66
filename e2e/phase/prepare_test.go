package phase

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"abl/internal/state"
	"abl/internal/testing/lab"
)

// A service with one dependency, as a repository keeps it.
const (
	withTiny = `import http from 'node:http';
import tiny from 'tiny';
http.createServer((req, res) => res.end(tiny)).listen(3000, '0.0.0.0');
`
	manifest = `{"name": "greeter", "version": "1.0.0", "scripts": {"start": "node server.mjs"}, "dependencies": {"tiny": "1.0.0"}}` + "\n"
	lock     = `{"name": "greeter", "version": "1.0.0", "lockfileVersion": 3, "requires": true, "packages": {
  "": {"name": "greeter", "version": "1.0.0", "dependencies": {"tiny": "1.0.0"}},
  "node_modules/tiny": {"version": "1.0.0", "resolved": "https://registry.example/tiny/-/tiny-1.0.0.tgz"}}}
`
	// looks is what preparing tries besides.
	looks = `echo "uid $(id -u)"
ls -d /workspace/* /workspace/tests/* /workspace/specs/*
env
touch .git/mine
curl -sS https://other.example/prepare
curl -sS -k --noproxy '*' --max-time 5 https://registry.example/direct
true
`
)

// prepares are how often something was prepared.
func prepares(t *testing.T, r lab.Result) int {
	t.Helper()
	all := events(t, r)
	if begun, ended := len(of(all, state.Preparing)), len(of(all, state.Prepared)); begun != ended {
		t.Errorf("%d times it began, %d times it ended", begun, ended)
	}
	return len(of(all, state.Preparing))
}

// TestPrepare: the dependencies of a repository are brought once for all starts, again when
// the lock file changes, and in a clone elsewhere, in a box that sees and reaches nothing else.
func TestPrepare(t *testing.T) {
	lab.Long(t)
	p := newProject(t, "")
	t.Cleanup(func() { dropImages(t, "prepare") })
	r := openRegistry(t, p, documentation)
	refuted := refute("tiny indeed")
	first, second := builds(must(0, "test -f node_modules/tiny/index.js")), builds(must(0, "test -f node_modules/tiny/index.js && echo >> package-lock.json"))
	first.Iteration, second.Iteration = 1, 2
	fails, passes := verifies(refuted), verifies()
	fails.Iteration, passes.Iteration = 1, 2
	script(p, first, second, fails, passes)
	p.Write(".abl/images/builder.Dockerfile", "ARG ABL_IMAGE\nFROM ${ABL_IMAGE}\nLABEL abl.test=prepare\nENV npm_config_registry=https://registry.example/\n")
	p.Write(".abl/ca.pem", string(r.cert))
	p.Write(".abl/config.yaml", strings.Replace(scripted, unproven, "verify: {evidence: required, strength_time: 0}\n", 1)+
		"source: {repo: .}\nimages: {builder: {dockerfile: .abl/images/builder.Dockerfile}}\n"+
		"network: {allow: [registry.example], egress: "+r.network+", ca_cert: .abl/ca.pem}\n"+
		"app: {command: npm start, port: 3000, ready: {path: /, timeout: 20s}, prepare: npm ci && sh looks.sh}\n")
	p.Write("server.mjs", withTiny)
	p.Write("package.json", manifest)
	p.Write("package-lock.json", lock)
	p.Write("looks.sh", looks)
	p.Write(".env", "SOME_API_KEY=swordfish-swordfish\n")
	p.Write(".gitignore", "node_modules/\n.env\n.abl/state.json\n.abl/lock\n.abl/logs/\n.abl/reports/\n.abl/project_map.txt\n.abl/work/\n.abl/tests/\n")
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"config", "user.name", "P"}, {"config", "user.email", "p@example.com"}, {"add", "-A"}, {"commit", "-qm", "a greeter"}} {
		p.Git("", args...)
	}
	p.Env = append(p.Env, "XDG_STATE_HOME="+t.TempDir())
	wants(t, "settings of the repository", p.Must(2, "phase", "1").Stderr, "network.ca_cert=.abl/ca.pem", "network.egress="+r.network)
	p.Must(0, "trust")
	dry := p.Must(0, "phase", "1", "--dry-run").Stdout
	wants(t, "the dry run", dry, `prepare: "npm ci && sh looks.sh", when a lock file has changed; it reaches registry.example`, "npm ci && sh looks.sh\n")

	run := p.Must(0, "phase", "1", "--json")
	if n, starts := prepares(t, run), len(of(events(t, run), state.AppStart)); n != 2 || starts < 4 {
		t.Errorf("it was prepared %d times for %d starts, want 2 for two lock files", n, starts)
	}
	if got := strings.Count(r.asked(), "GET registry.example/tiny/-/tiny-1.0.0.tgz"); got != 2 {
		t.Errorf("the registry gave the package %d times:\n%s", got, r.asked())
	}
	seen := p.Read(".abl/logs/calls/prepare/stdout") + p.Read(".abl/logs/calls/prepare/stderr")
	wants(t, "what preparing saw", seen, "uid ", "/workspace/src\n", "response 403", "Read-only file system")
	lacks(t, "what preparing saw", seen, "uid 0\n", "/workspace/tests\n", "/workspace/specs\n", "swordfish")
	wants(t, "the notes", notes(t, run), "the gateway refused other.example:443", "add to .abl/config.yaml: network: {allow: [other.example:443]}\n")
	lacks(t, "what the registry was asked", r.asked(), "prepare", "direct")
	if got := p.Git("", "status", "--porcelain"); got != "?? .abl/specs/contract-ids.txt" {
		t.Errorf("the person's repository: %s", got)
	}

	p.Must(0, "publish")
	origin := filepath.Join(t.TempDir(), "origin.git")
	p.Git("", "init", "-q", "--bare", "-b", "main", origin)
	p.Git("", "push", "-q", origin, "main", "abl/phase1", "refs/abl/*")
	q := elsewhere(p, origin)
	q.Must(2, "pull") // what is trusted in one project is not in another
	q.Must(0, "trust")
	q.Must(0, "pull")
	opened(q, "1", "tiny indeed")
	if got := strings.Count(r.asked(), "GET registry.example/tiny/-/tiny-1.0.0.tgz"); got != 3 {
		t.Errorf("the registry gave the package %d times", got)
	}
	noLeftovers(p)
	noLeftovers(q)
}

// TestPrepareReachesTheBuilder: preparing that fails, or changes what git tracks, is an app
// that does not start; the Builder hears of it and mends it.
func TestPrepareReachesTheBuilder(t *testing.T) {
	lab.Long(t)
	for name, c := range map[string]struct{ prepare, want string }{
		"an exit code": {"test -f mended || exit 3", "app.prepare ended with exit code 3"},
		"a lock file":  {"test -f mended || echo more >> package-lock.json", `app.prepare changed "package-lock.json", and abl undid that`},
	} {
		t.Run(name, func(t *testing.T) {
			first, second := builds(write("server.mjs", server), write("package-lock.json", "{}\n")), builds(must(0, "test \"$(cat package-lock.json)\" = '{}'"), write("mended", ""))
			first.Iteration, second.Iteration = 1, 2
			p := newProject(t, strings.Replace(nodeApp, "app: {", "app: {prepare: '"+c.prepare+"', ", 1), first, second, verifies())
			run := p.Must(0, "phase", "1", "--json")
			if got := verdicts(events(t, run)); got != "fail pass" {
				t.Errorf("verdicts %s", got)
			}
			told := p.Read(".abl/logs/calls/p1-build-2.1/in/prompt.md")
			wants(t, "the Builder's prompt", told, "- Dependencies may be missing: "+c.want, "OBSERVED:", c.prepare)
			lacks(t, "the first prompt", p.Read(".abl/logs/calls/p1-build-1.1/in/prompt.md"), "Dependencies may be missing")
			if n := prepares(t, run); n != 3 { // before the app, the Builder and the app again
				t.Errorf("it was prepared %d times", n)
			}
			noLeftovers(p)
		})
	}
}

// TestPrepareKilled: an abl that is killed while it prepares, or before it has noted that it
// did, leaves nothing that the next one does not take away, and that one prepares again.
func TestPrepareKilled(t *testing.T) {
	for _, point := range []string{"build.started", "prepare.done"} {
		t.Run(point, func(t *testing.T) {
			if point == "build.started" {
				lab.Long(t)
			}
			p := newProject(t, strings.Replace(nodeApp, "app: {", "app: {prepare: 'mkdir -p deps && touch deps/all', ", 1),
				builds(write("server.mjs", server), write("package-lock.json", "{}\n"), write(".gitignore", "deps/\n")), verifies())
			cmd := p.Cmd("phase", "1")
			cmd.Env = append(cmd.Env, "ABL_FAILPOINTS="+point+"=1*kill")
			out, err := cmd.CombinedOutput()
			if err == nil || cmd.ProcessState.ExitCode() != -1 {
				t.Fatalf("it was not killed: %v\n%s", err, out)
			}
			run := p.Must(0, "phase", "1", "--json")
			if n := prepares(t, run); n != 1 {
				t.Errorf("it was prepared %d times", n)
			}
			if !p.Exists("src/deps/all") {
				t.Error("nothing was brought")
			}
			noLeftovers(p)
		})
	}
}

// What a preparation that was killed had changed of the source's own is neither committed nor
// taken for the person's work.
func TestPrepareKilledInTheMiddle(t *testing.T) {
	lab.Long(t)
	const once = "test -e deps/all || { mkdir -p deps; touch deps/all; echo more >> package-lock.json; sleep 60; }"
	p := newProject(t, strings.Replace(nodeApp, "app: {", "app: {prepare: '"+once+"', ", 1),
		builds(write("server.mjs", server), write("package-lock.json", "{}\n"), write(".gitignore", "deps/\n")), verifies())
	cmd := p.Cmd("phase", "1")
	cmd.Env = append(cmd.Env, "ABL_FAILPOINTS=build.started=1*kill")
	if out, err := cmd.CombinedOutput(); err == nil || cmd.ProcessState.ExitCode() != -1 {
		t.Fatalf("it was not killed: %v\n%s", err, out)
	}
	for end := time.Now().Add(time.Minute); !strings.Contains(p.Read("src/package-lock.json"), "more"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the lock file is not changed")
		}
	}
	r := p.Must(9, "phase", "1")
	wants(t, "going on", r.Stderr, "abl was stopped while app.prepare ran", `"package-lock.json"`, "git -C src checkout -- .", "--take-mine")
	p.Git("src", "checkout", "-q", "--", ".")
	p.Must(0, "phase", "1")
	if got := p.Read("src/package-lock.json"); got != "{}\n" {
		t.Errorf("the lock file holds %q", got)
	}
	noLeftovers(p)
}
