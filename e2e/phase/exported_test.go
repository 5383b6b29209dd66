package phase

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"abl/internal/state"
	"abl/internal/testing/lab"
	"abl/roles/agent"
)

// noteTexts returns the texts of a run's notes.
func noteTexts(all []state.Event) string {
	var texts []string
	for _, e := range of(all, state.Note) {
		texts = append(texts, e.Text)
	}
	return strings.Join(texts, "\n")
}

// answer is the module that apps/answer-from-dist.mjs imports.
const answer = "export default 'ok';\n"

// The app has exactly the files of the commit under test. If a contract fails, the next Builder
// reads which path the commit does not contain.
func TestAppHasTheFilesOfTheCommit(t *testing.T) {
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
	wants(t, "the next Builder's prompt", p.Read(".abl/logs/calls/p1-build-2.1/in/prompt.md"),
		"    dist: ignored by .gitignore:2\n")
	files := strings.Fields(p.Git("src", "ls-tree", "-r", "--name-only", "HEAD"))
	wants(t, "the files that the app has", printed(p, "p1-verify-2.1"), strings.Join(files, "\n")+"\n")
	lacks(t, "the files that the app has", printed(p, "p1-verify-2.1"), ".env\n")
	wants(t, "abl report 1", p.Must(0, "report", "1").Stdout, p.Git("src", "rev-parse", "HEAD"),
		p.Git("src", "rev-parse", "HEAD^{tree}"))
	checkNothingLeft(p)
}

// adoptSource makes the project's folder a typical repository: with a submodule, a large file of
// git-lfs, a file that abl leaves out, and files that git ignores.
func adoptSource(p *lab.Project) {
	p.Helper()
	p.Git(".", "init", "-q", "-b", "main")
	for path, text := range map[string]string{
		"README":         "of the user\n",
		".gitignore":     "dist/\n.env\n/at-one\n/go-one\n",
		".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n",
		".gitmodules":    "[submodule \"lib\"]\n\tpath = deps/lib\n\turl = https://example.com/lib.git\n",
		"model.bin":      largeFile,
		"keys/token":     "of the user alone\n",
	} {
		p.Write(path, text)
		p.Git(".", "add", path)
	}
	p.Git(".", "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("a", 40)+",deps/lib")
	p.Git(".", "-c", "user.name=P", "-c", "user.email=p@example.com", "commit", "-q", "-m", "one")
}

// largeFile is git's content of a file in git-lfs.
const largeFile = "version https://git-lfs.github.com/spec/v1\noid sha256:" +
	"4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"

// A phase in an adopted repository passes with the files that git archive returns for the
// published branch. Ignored files, a submodule, .env and remains of an interrupted call are not
// in it, and the app did not have them when it was tested.
func TestPassingCommitRunsFromItsArchive(t *testing.T) {
	lab.Long(t)
	from := func(path string) agent.Step {
		return write("server.mjs", strings.Replace(lab.File(t, "apps/answer-from-dist.mjs"), "./dist/answer.mjs",
			"./"+path, 1))
	}
	p := newProject(t, nodeApp+"source: {repo: .}\nadopt: {exclude: [keys/token], baseline: off}\n",
		call("builder", 1, write("dist/answer.mjs", answer), write(".env", "SECRET=1\n"), gate(t, "one"),
			from("dist/answer.mjs"), report()),
		call("builder", 2, write("deps/lib/answer.mjs", answer), from("deps/lib/answer.mjs"), report()),
		call("builder", 3, write("own/answer.mjs", answer), from("own/answer.mjs"), report()),
		verifies(run(`curl -s "$ABL_APP_URL/files"`)))
	adoptSource(p)
	r := watch(p, func(e state.Event, abl *os.Process) {
		if e.Kind == state.Action && strings.Contains(e.Text, "at-one") {
			until(p, ".abl/work/src/at-one")
			_ = abl.Signal(os.Interrupt)
		}
	}, "phase", "1")
	if r.Code != 130 {
		t.Fatalf("the interrupted run: got exit code %d, want 130: %s", r.Code, r.Stderr)
	}
	p.Write(".abl/work/src/go-one", "")
	r = p.Must(0, "phase", "1", "--json")
	all := events(t, r)
	if got := verdicts(all); got != "fail fail pass" {
		t.Fatalf("verdicts: got %q, want the app not to start without dist, then without the submodule's file, then a pass",
			got)
	}
	const ignored = `abl tests the commit, which does not contain ".env" (ignored by .gitignore:2), "dist" (ignored by .gitignore:1)`
	const inside = `"deps/lib/answer.mjs" (inside a submodule: commits of this repository cannot contain it)`
	wants(t, "the notes after the fails", noteTexts(all), ignored+"\n", inside+`, "dist" (ignored by .gitignore:1)`)
	wants(t, "the third Builder's prompt", p.Read(".abl/logs/calls/p1-build-3.1/in/prompt.md"),
		"    deps/lib/answer.mjs: inside a submodule")
	p.Must(0, "publish")
	if got := p.Git(".", "show", "abl/phase1:model.bin") + "\n" +
		p.Git(".", "show", "abl/phase1:keys/token"); got != largeFile+"of the user alone" {
		t.Errorf("model.bin and keys/token on the published branch: got %q, want both as the user committed them", got)
	}
	export := exec.Command("git", "-C", p.Dir, "archive", "abl/phase1")
	export.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1") // which may have git-lfs
	archive, err := export.Output()
	if err != nil {
		t.Fatal(err)
	}
	bare := exec.Command("docker", "run", "--rm", "-i", "--network", "none", toolsImage(p), "sh", "-c",
		lab.File(t, "scripts/starts-an-archive.sh"))
	bare.Stdin = bytes.NewReader(archive)
	got, err := bare.Output()
	if err != nil {
		t.Fatalf("cannot run the archive in a container: %v", err)
	}
	text, files, _ := strings.Cut(string(got), "\n")
	if text != "ok" {
		t.Errorf("the app of the archive responds: got %q, want ok", text)
	}
	tested := strings.Replace(files, "keys/token\n", "", 1) // abl leaves it out
	wants(t, "the files that the tested app had", printed(p, "p1-verify-3.1"), tested)
	checkNothingLeft(p)
}
