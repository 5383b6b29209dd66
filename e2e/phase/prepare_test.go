package phase

import (
	"path/filepath"
	"strings"
	"testing"

	"abl/internal/state"
	"abl/internal/testing/lab"
	"abl/roles/agent"
)

// prepares returns the number of preparations of a run. Each one must have ended.
func prepares(t *testing.T, r lab.Result) int {
	t.Helper()
	all := events(t, r)
	if begun, ended := len(of(all, state.Preparing)), len(of(all, state.Prepared)); begun != ended {
		t.Errorf("got %d ends of preparations, want %d", ended, begun)
	}
	return len(of(all, state.Preparing))
}

// TestMavenReachesTheGateway checks that Maven, which ignores HTTPS_PROXY, finds the gateway of
// app.prepare. The gateway refuses the host with the line to add, because it knows the call.
func TestMavenReachesTheGateway(t *testing.T) {
	lab.Long(t)
	p := hasServer(t, "command: node server.mjs, port: 3000, ready: {path: /, timeout: 20s}, "+
		"prepare: mvn -B -q validate", server)
	p.Write("pom.xml", lab.File(t, "apps/parent-only/pom.xml"))
	p.Write(".abl/config.yaml", p.Read(".abl/config.yaml")+"toolchain: {java: \"21\"}\nnetwork: {allow: [npm]}\n")
	p.Git("", "add", "-A")
	p.Git("", "-c", "user.name=P", "-c", "user.email=p@example.com", "commit", "-qm", "with Maven")
	wants(t, "abl doctor", p.Run("doctor").Stdout, "repo.maven.apache.org:443")
	checkNothingLeft(p)
}

// TestPrepare checks that the dependencies of a repository are downloaded once for all starts,
// again when the lock file changes, and in another clone. The container of the download sees and
// reaches nothing else.
func TestPrepare(t *testing.T) {
	lab.Long(t)
	p := newProject(t, "")
	t.Cleanup(func() { dropImages(t, "prepare") })
	r := openRegistry(t, p, documentation)
	// The package's text is not in the contract.
	p.Write(".abl/specs/phase1.md", strings.Replace(oneSpec, "with the text ok", "with a word", 1))
	refuted := refute("tiny indeed")
	refuted.Text = strings.Replace(refuted.Text, "with the text ok", "with a word", 1)
	const prepared = "test -f node_modules/tiny/index.js"
	first, second := builds(must(0, prepared)), builds(must(0, prepared), must(0, "echo >> package-lock.json"))
	first.Iteration, second.Iteration = 1, 2
	fails, passes := verifies(refuted), verifies()
	fails.Iteration, passes.Iteration = 1, 2
	script(p, first, second, fails, passes)
	p.Write(".abl/images/builder.Dockerfile",
		"ARG ABL_IMAGE\nFROM ${ABL_IMAGE}\nLABEL abl.test=prepare\nENV npm_config_registry=https://registry.example/\n")
	p.Write(".abl/ca.pem", string(r.cert))
	p.Write(".abl/config.yaml", strings.Replace(scripted, unproven, "verify: {evidence: required, strength_time: 0}\n", 1)+
		"source: {repo: .}\nimages: {builder: {dockerfile: .abl/images/builder.Dockerfile}}\n"+
		"network: {allow: [registry.example], egress: "+r.network+", ca_cert: .abl/ca.pem}\n"+
		"app: {command: npm start, port: 3000, ready: {path: /, timeout: 20s}, prepare: npm ci && sh looks.sh}\n")
	p.Write("server.mjs", lab.File(t, "apps/greeter/server.mjs"))
	p.Write("package.json", lab.File(t, "apps/greeter/package.json"))
	p.Write("package-lock.json", lab.File(t, "apps/greeter/package-lock.json"))
	p.Write("looks.sh", lab.File(t, "steps/looks-around.sh"))
	p.Write(".env", "SOME_API_KEY=swordfish-swordfish\n")
	p.Write(".gitignore", "node_modules/\n.env\n.abl/state.json\n.abl/lock\n.abl/logs/\n.abl/reports/\n"+
		".abl/project_map.txt\n.abl/work/\n.abl/tests/\n")
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"},
		{"config", "user.name", "P"},
		{"config", "user.email", "p@example.com"},
		{"add", "-A"},
		{"commit", "-qm", "a greeter"},
	} {
		p.Git("", args...)
	}
	p.Env = append(p.Env, "XDG_STATE_HOME="+t.TempDir())
	wants(t, "settings of the repository", p.Must(2, "phase", "1").Stderr, "network.ca_cert=.abl/ca.pem",
		"network.egress="+r.network)
	p.Must(0, "trust")
	dry := p.Must(0, "phase", "1", "--dry-run").Stdout
	wants(t, "the dry run", dry, `prepare: "npm ci && sh looks.sh", if a lock file or manifest has changed; it can reach registry.example`, "npm ci && sh looks.sh\n")

	run := p.Must(0, "phase", "1", "--json")
	if n, starts := prepares(t, run), len(of(events(t, run), state.AppStart)); n != 3 || starts < 4 {
		t.Errorf("got %d preparations for %d starts, want 3: for the Builder, and for the app by each of two lock files",
			n, starts)
	}
	if got := strings.Count(r.asked(), "GET registry.example/tiny/-/tiny-1.0.0.tgz"); got != 3 {
		t.Errorf("downloads of the package: got %d, want 3:\n%s", got, r.asked())
	}
	seen := p.Read(".abl/logs/calls/prepare/stdout") + p.Read(".abl/logs/calls/prepare/stderr")
	wants(t, "the output of app.prepare", seen, "uid ", "/workspace/src\n", "response 403", "cannot touch '.git/mine'")
	lacks(t, "the output of app.prepare", seen, "uid 0\n", "/workspace/tests\n", "/workspace/specs\n", "swordfish")
	wants(t, "the notes", notes(t, run), "the gateway refused other.example:443",
		"add to .abl/config.yaml: network: {allow: [other.example:443]}\n")
	lacks(t, "the notes on missing paths", notes(t, run), `"node_modules"`)
	lacks(t, "the registry's log", r.asked(), "prepare", "direct")
	if got := p.Git("", "status", "--porcelain"); got != "?? .abl/specs/contract-ids.txt" {
		t.Errorf("changes in the user's repository: got %s, want only the contract ids", got)
	}

	p.Must(0, "publish")
	origin := filepath.Join(t.TempDir(), "origin.git")
	p.Git("", "init", "-q", "--bare", "-b", "main", origin)
	p.Git("", "push", "-q", origin, "main", "abl/phase1", "refs/abl/*")
	q := cloneOf(p, origin)
	q.Must(2, "pull") // trust is per project
	q.Must(0, "trust")
	q.Must(0, "pull")
	checkOpen(q, "1", "tiny indeed")
	if got := strings.Count(r.asked(), "GET registry.example/tiny/-/tiny-1.0.0.tgz"); got != 4 {
		t.Errorf("downloads of the package: got %d, want 4", got)
	}
	checkNothingLeft(p)
	checkNothingLeft(q)
}

// A preparation that fails, or that changes files which git tracks, counts as an app that does
// not start. The Builder gets the reason in its prompt and fixes it.
func TestPrepareReachesTheBuilder(t *testing.T) {
	lab.Long(t)
	const prepare = "sh prepare.sh"
	builder := func(iteration int, steps ...agent.Step) agent.ScriptCall {
		c := builds(steps...)
		c.Iteration = iteration
		return c
	}
	p := newProject(t, strings.Replace(nodeApp, "app: {", "app: {prepare: '"+prepare+"', ", 1),
		builder(1, write("server.mjs", server), write("package-lock.json", "{}\n"),
			write("prepare.sh", lab.File(t, "steps/fails-twice.sh"))),
		builder(2, write("fixed-exit-code", "")),
		builder(3, must(0, "test \"$(cat package-lock.json)\" = '{}'"), write("fixed-lock-file", "")), verifies())
	r := p.Must(0, "phase", "1", "--json")
	if got, want := verdicts(events(t, r)), "fail fail pass"; got != want {
		t.Errorf("verdicts: got %q, want %q", got, want)
	}
	lacks(t, "the first prompt", promptOf(p, "p1-build-1.1"), "Dependencies may be missing")
	for key, want := range map[string]string{
		"p1-build-2.1": "app.prepare ended with exit code 3",
		"p1-build-3.1": `app.prepare changed "package-lock.json", and abl undid the change`,
	} {
		wants(t, "the prompt of "+key, promptOf(p, key), "- Dependencies may be missing: "+want, "OBSERVED:", prepare)
	}
	// Twice before the app and the next Builder, and once before the app that starts.
	if got, want := prepares(t, r), 5; got != want {
		t.Errorf("preparations: got %d, want %d", got, want)
	}
	checkNothingLeft(p)
}

// abl is killed while a preparation runs that has changed a file of the source: the next abl
// neither commits the change nor takes it for the user's work. abl is killed after a preparation
// and before its record: the next abl prepares again.
func TestPrepareKilled(t *testing.T) {
	lab.Long(t)
	p := newProject(t, strings.Replace(nodeApp, "app: {", "app: {prepare: 'sh prepare.sh', ", 1),
		builds(write("server.mjs", server)), verifies())
	p.Write("src/.gitignore", "deps/\nhang\n")
	p.Write("src/package-lock.json", "{}\n")
	p.Write("src/prepare.sh", lab.File(t, "steps/changes-the-lock-file-once.sh"))
	p.Write("src/hang", "")
	killedAt := func(point string) {
		t.Helper()
		cmd := p.Cmd("phase", "1")
		cmd.Env = append(cmd.Env, "ABL_FAILPOINTS="+point+"=1*kill")
		if out, err := cmd.CombinedOutput(); err == nil || cmd.ProcessState.ExitCode() != -1 {
			t.Fatalf("%s: got %v, want a kill: %s", point, err, out)
		}
	}

	killedAt("build.started")
	until(p, "src/deps/changed")
	r := p.Must(9, "phase", "1")
	wants(t, "the next run", r.Stderr, "abl was stopped while app.prepare ran", `"package-lock.json"`,
		"git -C src checkout -- .", "--take-mine")
	p.Git("src", "checkout", "-q", "--", ".")
	killedAt("prepare.done")
	r = p.Must(0, "phase", "1", "--json")
	if got := prepares(t, r); got != 2 {
		t.Errorf("preparations of the last run: got %d, want 2, for the Builder and for the app", got)
	}
	if got, want := p.Read("src/package-lock.json"), "{}\n"; got != want {
		t.Errorf("the lock file: got %q, want %q", got, want)
	}
	if !p.Exists("src/deps/all") {
		t.Error("src/deps/all: got no file, want the one that the preparation makes")
	}
	checkNothingLeft(p)
}
