package phase

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"abl/internal/testing/lab"
)

// longLine is longer than the lines that abl prints elsewhere.
var longLine = "/*" + strings.Repeat("x", 5000) + "*/ "

// existingRepo makes the project's folder a repository with two commits, settings and specs.
func existingRepo(p *lab.Project, source string) {
	p.Helper()
	p.Write("package.json", `{"name": "greeter", "scripts": {"start": "node server.mjs"}}`+"\n")
	p.Write("server.mjs", lab.File(p.TB, "apps/greeting.mjs"))
	p.Write("lib/word.mjs", longLine+"export const word = 'hello';\n")
	p.Git("", "init", "-q", "-b", "main")
	p.Git("", "config", "user.name", "P")
	p.Git("", "config", "user.email", "p@example.com")
	p.Git("", "add", "package.json", "lib", "server.mjs")
	p.Git("", "commit", "-qm", "a greeter")
	p.Write("secret-tests/check.sh", "curl app\n")
	p.Write(".gitignore", ".env\n.abl/state.json\n.abl/lock\n.abl/logs/\n.abl/reports/\n.abl/project_map.txt\n"+
		".abl/work/\n.abl/tests/\n")
	p.Write(".abl/config.yaml", p.Read(".abl/config.yaml")+source+"adopt: {exclude: [secret-tests]}\n")
	p.Git("", "add", "-A")
	p.Git("", "commit", "-qm", "specs, and tests of our own")
	p.Write(".git/hooks/pre-commit", "#!/bin/sh\ntouch "+filepath.Join(p.Dir, "hook-ran")+"\n")
	if err := os.Chmod(filepath.Join(p.Dir, ".git/hooks/pre-commit"), 0o755); err != nil {
		p.Fatal(err)
	}
	p.Write("lib/word.mjs", "export const word = 'not committed';\n")
}

// cloneOf returns a clone of p's bare origin, like a colleague's.
func cloneOf(p *lab.Project, origin string) *lab.Project {
	p.Helper()
	other := *p
	other.Dir = filepath.Join(p.TempDir(), "colleague")
	p.Git("", "clone", "-q", origin, other.Dir)
	other.Git("", "config", "user.name", "Q")
	other.Git("", "config", "user.email", "q@example.com")
	other.Git("", "fetch", "-q", "origin", "refs/abl/*:refs/abl/*")
	return &other
}

// TestMoveIn plays a phase on an existing repository and publishes it. A colleague pulls it and
// plays the next one.
func TestMoveIn(t *testing.T) {
	p := newProject(t, "app: {command: npm start, port: 3000, ready: {path: /, timeout: 20s}}\n"+
		"verify: {evidence: required, strength_time: 0, allow_weak: all}\n",
		builds(must(0, "git log --format=%s | grep -qx 'a greeter'"), must(0, "git log -p >/dev/null"),
			must(1, "git status --porcelain | grep ."),
			must(1, "cat secret-tests/check.sh .abl/config.yaml"), must(1, "git grep -q 'curl app' $(git rev-list --all)"),
			must(0, "grep -q hello lib/word.mjs"), write("lib/word.mjs", longLine+"export const word = 'ok';\n")),
		verifies())
	existingRepo(p, "source: {repo: .}\n")
	if testing.Short() {
		p.Env = append(p.Env, "ABL_VERIFY_EVIDENCE=off")
	}
	p.Write(".abl/specs/contract-ids.txt", "")
	p.Git("", "add", "-N", ".abl/specs/contract-ids.txt") // abl writes the file, and the user commits it
	before, tree := p.Git("", "rev-parse", "HEAD"), p.Git("", "status", "--porcelain")
	r := p.Must(0, "phase", "1")
	wants(t, "the phase", r.Stdout+r.Stderr, "the Builder works on a clone of main at "+before[:12], "on branch abl/phase1", "abl does not run its hooks (hooks/pre-commit)")
	const work = ".abl/work/src"
	if got := p.Git(work, "rev-parse", "abl/phase1^"); got != before {
		t.Errorf("parent of the first commit: got %s, want the user's %s", got, before)
	}
	r = p.Must(0, "publish")
	wants(t, "publish", r.Stdout+r.Stderr, "refs/heads/abl/phase1 is at ", "refs/abl/tests is at ",
		"refs/abl/state is at ", "git push --atomic origin abl/phase1 'refs/abl/*'")
	if got := p.Git("", "diff", "--name-only", "main...abl/phase1"); got != "lib/word.mjs" {
		t.Errorf("files that the Builder changed: got %q, want lib/word.mjs", got)
	}
	if p.Git("", "rev-parse", "HEAD") != before || p.Git("", "branch", "--show-current") != "main" ||
		p.Git("", "status", "--porcelain") != tree || p.Git("", "fsck", "--strict") != "" {
		t.Errorf("the user's repository: got a change, want none:\n%s", p.Git("", "status"))
	}
	if _, err := os.Lstat(filepath.Join(p.Dir, "hook-ran")); err == nil {
		t.Error("the pre-commit hook: got a run of it, want none")
	}
	for _, ref := range []string{"refs/abl/state", "refs/abl/tests"} {
		for _, name := range strings.Fields(p.Git("", "ls-tree", "-r", "--name-only", ref)) {
			lacks(t, ref+" "+name, p.Git("", "show", ref+":"+name), p.Dir)
		}
	}
	wants(t, "the pull request", p.Must(0, "publish", "1", "--pr-body").Stdout,
		"### abl phase 1: <code>Answer</code>", "pass", "P1.C1", "cost: ", "changed in the source: ", "git diff HEAD...origin/abl/phase1")
	wants(t, "publishing again", p.Must(0, "publish", "--json").Stdout, p.Git("", "rev-parse", "refs/abl/state"))

	checkOpen(p, "1", "ok")
	diff := p.Must(0, "open", "1", "--diff").Stdout
	if want := "diff a/lib/word.mjs b/lib/word.mjs\n--- a/lib/word.mjs\n+++ b/lib/word.mjs\n@@ -1,1 +1,1 @@\n-" +
		longLine + "export const word = 'hello';\n+" + longLine + "export const word = 'ok';\n"; diff != want {
		t.Errorf("the change of phase 1: got\n%swant\n%s", diff, want)
	}

	origin := filepath.Join(t.TempDir(), "origin.git")
	p.Git("", "init", "-q", "--bare", "-b", "main", origin)
	p.Git("", "remote", "add", "origin", origin)
	p.Git("", "push", "-q", "origin", "main", "abl/phase1", "refs/abl/*")
	q := cloneOf(p, origin)
	r = q.Must(0, "status")
	wants(t, "the colleague", r.Stdout+r.Stderr, "restored: phase 1 passed", "passed")
	if a, b := p.Must(0, "costs", "--csv").Stdout, q.Must(0, "costs", "--csv").Stdout; a != b {
		t.Errorf("the colleague's costs: got\n%s\nwant\n%s", b, a)
	}
	if a, b := p.Must(0, "report", "1").Stdout, q.Must(0, "report", "1").Stdout; a != b {
		t.Errorf("the colleague's report: got\n%s\nwant\n%s", b, a)
	}
	r = q.Must(0, "phase", "1")
	wants(t, "phase 1 there", r.Stdout+r.Stderr, "phase 1 has already passed and its spec has not changed")

	// The colleague merges, plays a second phase, and the first user pulls it.
	q.Git("", "merge", "-q", "--no-ff", "-m", "merge phase 1", "origin/abl/phase1")
	q.Write(".abl/specs/phase2.md", "# Phase 2: More\n\n## Contracts\n\n- GET /more → 200 with the text ok\n")
	q.Git("", "add", "-A")
	q.Git("", "commit", "-qm", "a second phase")
	suite2 := strings.Replace(suite, "1..1", "1..2", 1) +
		"curl -sf \"$ABL_APP_URL/more\" >/dev/null && echo 'ok 2 - P2.C1' || echo 'not ok 2 - P2.C1'\n"
	script(q, builds(must(0, "grep -q ok lib/word.mjs"), write("more.txt", "more")),
		verifies(write("run.sh", suite2, "0755")))
	r = q.Must(0, "phase", "2")
	wants(t, "phase 2", r.Stdout+r.Stderr, "main has new commits; merged into abl/phase2")
	was := q.Git(work, "rev-parse", "abl/phase1", "HEAD")
	checkOpen(q, "1", "ok")
	if is := q.Git(work, "rev-parse", "abl/phase1", "HEAD"); is != was {
		t.Errorf("the branch of phase 1 after abl open: got\n%s\nwant\n%s", is, was)
	}
	if diff := q.Must(0, "open", "--diff").Stdout; !strings.HasPrefix(diff, "diff /dev/null b/more.txt\n") ||
		strings.Count(diff, "diff ") != 1 {
		t.Errorf("the change of phase 2: got\n%s\nwant only more.txt", diff)
	}
	q.Must(0, "publish")
	q.Git("", "push", "-q", "origin", "main", "abl/phase1", "abl/phase2", "refs/abl/*")
	// The first user has continued in the meantime, too.
	p.Write(".abl/specs/phase2.md", "# Phase 2: Other\n\n## Contracts\n\n- GET /other → 200 with the text ok\n")
	script(p, builds(write("other.txt", "other")), verifies(write("run.sh", suite2, "0755")))
	p.Must(0, "phase", "2")
	p.Git("", "fetch", "-q", "origin", "refs/heads/abl/*:refs/remotes/origin/abl/*", "refs/abl/*:refs/abl/*")
	wants(t, "publishing second", p.Must(9, "publish").Stderr, "another user published in the meantime", "abl pull")
	wants(t, "pulling what went on", p.Must(9, "pull").Stderr, "cannot pull refs/abl/state", "abl pull --theirs")
	wants(t, "taking theirs", p.Must(0, "pull", "--theirs").Stdout, "restored: phase 1 passed, phase 2 passed", ".abl/aside-1")
	wants(t, "status", p.Must(0, "status").Stdout, "passed")
	checkNothingLeft(p)
	checkNothingLeft(q)
}

// TestMoveInWithAConflict checks that the user decides about changes on both sides, and that
// nothing moves before.
func TestMoveInWithAConflict(t *testing.T) {
	lab.Long(t)
	p := newProject(t, "app: {command: node server.mjs, port: 3000, ready: {path: /, timeout: 20s}}\n",
		builds(write("lib/word.mjs", "export const word = 'ko';\n")), verifies(refute("ko")))
	p.Write(".abl/config.yaml", strings.Replace(p.Read(".abl/config.yaml"), "call_timeout: 60s",
		"call_timeout: 60s, max_verifier_iterations: 1", 1))
	existingRepo(p, "source: {repo: .}\n")
	p.Must(3, "phase", "1")
	p.Git("", "checkout", "-q", "lib/word.mjs")
	p.Git("", "rm", "-q", "package.json")
	p.Write("lib/word.mjs", "export const word = 'hi';\n")
	p.Git("", "commit", "-qam", "another word", "--no-verify")
	tip := p.Git(".abl/work/src", "rev-parse", "abl/phase1")
	r := p.Must(9, "phase", "1", "--again")
	wants(t, "a conflict", r.Stderr, "cannot merge the new commits of main", "lib/word.mjs", "git -C .abl/work/src -c ")
	lacks(t, "a conflict", r.Stderr, "package.json")
	if got := p.Git(".abl/work/src", "rev-parse", "abl/phase1"); got != tip ||
		p.Git(".abl/work/src", "status", "--porcelain") != "" {
		t.Errorf("the branch: got %s, want %s without changes", got, tip)
	}
	// The user decides with the commands of the hint.
	steps := regexp.MustCompile(`hint: (git .* merge \S+); resolve the conflicts; (git .* commit -a); then run the same command again`).
		FindStringSubmatch(r.Stderr)
	if steps == nil {
		t.Fatalf("the hint: got no commands, want git merge and git commit:\n%s", r.Stderr)
	}
	byHand := func(command string) error {
		cmd := exec.Command("sh", "-c", command)
		cmd.Dir = p.Dir
		out, err := cmd.CombinedOutput()
		t.Logf("%s:\n%s", command, out)
		return err
	}
	if err := byHand(steps[1]); err == nil {
		t.Fatal("git merge: got no conflict, want one")
	}
	p.Write(".abl/work/src/lib/word.mjs", "export const word = 'ok';\n")
	if err := byHand(steps[2] + " -qm 'ok, then'"); err != nil {
		t.Fatalf("git commit: got %v, want success", err)
	}
	script(p, builds(must(0, "grep -q ok lib/word.mjs"), must(1, "test -e package.json")), verifies())
	p.Must(0, "phase", "1", "--again")
	checkNothingLeft(p)
}

// TestMoveInBelow runs the Builder, the commands and the app in a folder of a monorepo.
func TestMoveInBelow(t *testing.T) {
	lab.Long(t)
	p := newProject(t, "app: {command: node server.mjs, port: 3000, ready: {path: /, timeout: 20s}}\n"+
		"builder_commands: {here: {command: test -f server.mjs}}\n",
		builds(must(0, "test \"$PWD\" = /workspace/src/services/api"), must(0, "test -f ../../package.json"),
			must(0, "abl-cmd here"), write("server.mjs", server)), verifies())
	p.Write("services/api/server.mjs", "\n")
	existingRepo(p, "source: {repo: ., dir: services/api}\npublish: auto\n")
	r := p.Must(0, "phase", "1", "--no-baseline") // there is no app yet
	wants(t, "automatic publishing", r.Stderr, "refs/heads/abl/phase1 is at ", "refs/abl/state is at ")
	if got := p.Git("", "diff", "--name-only", "main...abl/phase1"); got != "services/api/server.mjs" {
		t.Errorf("files that the Builder changed: got %q, want services/api/server.mjs", got)
	}
	checkNothingLeft(p)
}

// TestMoveInHostile clones, continues, publishes and pulls a hostile repository. abl runs nothing
// that the repository names, and reports each such setting.
func TestMoveInHostile(t *testing.T) {
	lab.Long(t)
	p := newProject(t, "app: {command: npm start, port: 3000, ready: {path: /, timeout: 20s}}\n",
		builds(must(0, "test -d deps/lib"), must(1, "test -e deps/lib/x"), must(1, "git status --porcelain | grep ."),
			write("lib/word.mjs", "export const word = 'ok';\n")), verifies())
	existingRepo(p, "source: {repo: .}\n")
	ran := filepath.Join(t.TempDir(), "ran")
	for _, hook := range []string{
		"post-checkout", "reference-transaction", "pre-commit", "post-merge", "update",
		"fsmonitor-watchman",
	} {
		p.Write(".git/hooks/"+hook, "#!/bin/sh\ntouch "+ran+"\n")
		if err := os.Chmod(filepath.Join(p.Dir, ".git/hooks", hook), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p.Git("", "update-index", "--add", "--cacheinfo", "160000,1111111111111111111111111111111111111111,deps/lib")
	p.Write(".gitmodules", "[submodule \"lib\"]\n\tpath = deps/lib\n\turl = ext::sh -c touch% "+ran+"\n")
	p.Write(".gitattributes", "*.mjs filter=evil\n*.bin filter=lfs\n")
	p.Git("", "-c", "core.hooksPath=/dev/null", "add", ".gitmodules", ".gitattributes")
	p.Git("", "-c", "core.hooksPath=/dev/null", "commit", "-qm", "odd things")
	for _, set := range [][]string{
		{"filter.evil.smudge", "touch " + ran}, {"filter.evil.clean", "touch " + ran}, {"include.path", ran +
			".config"}, {"core.fsmonitor", "touch " + ran},
		{"core.sshCommand", "touch " + ran},
		{"merge.evil.driver", "touch " + ran},
		{"core.pager", "touch " + ran},
	} {
		p.Git("", append([]string{"config"}, set...)...)
	}
	other := filepath.Join(t.TempDir(), "borrowed")
	p.Git("", "-c", "core.fsmonitor=", "-c", "core.hooksPath=/dev/null", "clone", "-q", "--bare", p.Dir, other)
	p.Write(".git/objects/info/alternates", filepath.Join(other, "objects")+"\n")
	if err := os.RemoveAll(ran); err != nil { // created by the user's own git
		t.Fatal(err)
	}
	r := p.Must(0, "phase", "1")
	wants(t, "the phase", r.Stdout+r.Stderr, "abl does not run its hooks (hooks/", "abl does not run its filters, "+
		"files are as committed (evil)", "abl does not read the files that its config includes",
		"the clone gets copies of the objects that it borrows from another repository", "its submodules are empty "+
			"directories in the clone (deps/lib)", "Git LFS", "the clone omits secret-tests, .abl")
	p.Must(0, "publish")
	if err := os.RemoveAll(filepath.Join(p.Dir, ".abl/state.json")); err != nil {
		t.Fatal(err)
	}
	wants(t, "pull", p.Must(0, "pull").Stdout, "restored: phase 1 passed")
	if _, err := os.Lstat(ran); err == nil {
		t.Error("programs that the repository names: got a run of one, want none")
	}
	if got := p.Git("", "-c", "core.fsmonitor=", "diff", "--name-only", "main...abl/phase1"); got != "lib/word.mjs" {
		t.Errorf("changed files: got %q, want lib/word.mjs", got)
	}
	p.Git("", "symbolic-ref", "HEAD", "refs/heads/--upload-pack=x")
	wants(t, "a branch like an option", p.Must(9, "phase", "1", "--again").Stderr, "--upload-pack=x")
	checkNothingLeft(p)
}

// checkOpen runs the app of a phase for the user, sends a request, and ends it.
func checkOpen(p *lab.Project, phase, want string) {
	p.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		p.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	wants(p, "a port that is taken", p.Must(7, "open", phase, "--port", port).Stderr, "address already in use",
		"abl open --port N")
	l.Close()
	killed, _, _ := startOpen(p, phase, port) // its container occupies the port until the next abl removes it
	_ = killed.Process.Kill()
	_ = killed.Wait()
	cmd, said, lines := startOpen(p, phase, port)
	answer, err := http.Get("http://127.0.0.1:" + port + "/")
	if lab.Remote() {
		wants(p, "abl open", lines, "the engine is on another machine", "ssh -L "+port+":127.0.0.1:"+port)
	} else if err != nil {
		p.Errorf("request to the opened app: got error %v, want none\n%s", err, lines)
	} else {
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if string(text) != want || err != nil {
			p.Errorf("got response %q, error %v, want %q", text, err, want)
		}
	}
	_ = cmd.Process.Signal(os.Interrupt)
	_, _ = io.Copy(io.Discard, said)
	if err := cmd.Wait(); err != nil {
		p.Errorf("abl open: got error %v, want none\n%s", err, lines)
	}
	checkNothingLeft(p)
}

// startOpen starts abl open and waits until the app is served or the command has ended.
func startOpen(p *lab.Project, phase, port string) (cmd *exec.Cmd, said io.Reader, lines string) {
	p.Helper()
	cmd = p.Cmd("open", phase, "--port", port)
	said, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		p.Fatal(err)
	}
	for r := bufio.NewScanner(said); !strings.Contains(lines, "until Ctrl-C") && r.Scan(); {
		lines += r.Text() + "\n"
	}
	return cmd, said, lines
}
