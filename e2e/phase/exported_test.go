package phase

import (
	"strings"
	"testing"

	"abl/internal/state"
	"abl/internal/testing/lab"
)

// noteTexts are the texts of the notes of a run.
func noteTexts(all []state.Event) string {
	var texts []string
	for _, e := range of(all, state.Note) {
		texts = append(texts, e.Text)
	}
	return strings.Join(texts, "\n")
}

// answer is the module that apps/answer-from-dist.mjs needs.
const answer = "export default 'ok';\n"

// The app has the files of the commit that is judged, and no others. A path that the commit does
// not contain is named when a contract fails, and the next Builder reads it.
func TestTheCommitIsTested(t *testing.T) {
	app := write("server.mjs", lab.File(t, "apps/answer-from-dist.mjs"))
	first := call("builder", 1, app, write(".gitignore", "# built\ndist/\n.env\n"),
		write("dist/answer.mjs", answer), write(".env", "SECRET=1\n"), report())
	second := call("builder", 2, write(".gitignore", ".env\n"), report())
	p := newProject(t, nodeApp, first, second, verifies(run(`curl -s "$ABL_APP_URL/files"`)))
	r := p.Must(0, "phase", "1", "--json")
	all := events(t, r)
	if got := verdicts(all); got != "fail pass" {
		t.Fatalf("got verdicts %q, want the app not to start without dist, then a pass", got)
	}
	const absent = `abl tests the commit, which does not contain ".env" (ignored by .gitignore:3), "dist" (ignored by .gitignore:2)`
	wants(t, "the notes after the fail", noteTexts(all), absent)
	wants(t, "the next Builder's prompt", p.Read(".abl/logs/calls/p1-build-2.1/in/prompt.md"), "    dist: ignored by .gitignore:2\n")
	files := strings.Fields(p.Git("src", "ls-tree", "-r", "--name-only", "HEAD"))
	wants(t, "the files that the app has", printed(p, "p1-verify-2.1"), strings.Join(files, "\n")+"\n")
	lacks(t, "the files that the app has", printed(p, "p1-verify-2.1"), ".env\n")
	wants(t, "abl report 1", p.Must(0, "report", "1").Stdout, p.Git("src", "rev-parse", "HEAD"), p.Git("src", "rev-parse", "HEAD^{tree}"))
	noLeftovers(p)
}

// A change inside a submodule is in no commit of the repository: the contract fails, and the next
// Builder reads why.
func TestSubmoduleIsNotTested(t *testing.T) {
	lab.Long(t)
	app := write("server.mjs", strings.Replace(lab.File(t, "apps/answer-from-dist.mjs"), "./dist/", "./deps/lib/", 1))
	first := call("builder", 1, app, write("deps/lib/answer.mjs", answer), report())
	second := call("builder", 2, run("sed -i s,./deps/lib/,./own/, server.mjs"), write("own/answer.mjs", answer), report())
	p := newProject(t, nodeApp+"source: {repo: .}\n", first, second, verifies())
	p.Git(".", "init", "-q", "-b", "main")
	p.Write("README", "of the user\n")
	p.Write(".gitmodules", "[submodule \"lib\"]\n\tpath = deps/lib\n\turl = https://example.com/lib.git\n")
	p.Git(".", "add", "README", ".gitmodules")
	p.Git(".", "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("a", 40)+",deps/lib")
	p.Git(".", "-c", "user.name=P", "-c", "user.email=p@example.com", "commit", "-q", "-m", "one")
	r := p.Must(0, "phase", "1", "--json")
	all := events(t, r)
	if got := verdicts(all); got != "fail pass" {
		t.Fatalf("got verdicts %q, want fail, then pass", got)
	}
	const absent = `"deps/lib/answer.mjs" (inside a submodule: commits of this repository cannot hold it)`
	wants(t, "the notes after the fail", noteTexts(all), absent)
	wants(t, "the next Builder's prompt", p.Read(".abl/logs/calls/p1-build-2.1/in/prompt.md"), "    deps/lib/answer.mjs: inside a submodule")
	p.Must(0, "publish")
	wants(t, "the published branch", p.Git(".", "ls-tree", "-r", "--name-only", "abl/phase1"), "own/answer.mjs", "server.mjs")
	noLeftovers(p)
}
