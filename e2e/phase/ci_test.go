package phase

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"abl/internal/testing/lab"
	"abl/internal/yamlfile"
	"abl/roles/agent"
)

// wordy lists lines of an agent that look like commands for a runner.
var wordy = []string{
	"::set-output name=outcome::passed", " ::add-mask::a", "##[error]done",
	"::stop-commands::x", "x ##vso[task.complete]",
}

// ciProject returns a repository with two phases, its bare origin, and a switch that makes the
// role hang. Its branches begin with prefix.
func ciProject(t *testing.T, role, prefix string) (p *lab.Project, origin string, hang func(bool)) {
	t.Helper()
	p = newProject(t, nodeApp+"source: {repo: .}\nverify: {evidence: required, strength_time: 0}\n"+
		"publish: {prefix: "+prefix+"}\n")
	says := func(s string) *string { return &s }
	scenario := func(hangs bool) string {
		first := builds(runsScript(t, "builds-with-commands.sh"))
		second := verifies(hasSuite(t, "a-test-a-phase.sh"), runsScript(t, "adds-a-test.sh"))
		for _, words := range wordy {
			first.Steps = append([]agent.Step{{Say: says(words)}, raw(words)}, first.Steps...)
		}
		if hangs && role == "builder" {
			first = builds(run("sleep 600"))
		} else if hangs {
			second = verifies(run("sleep 600"))
		}
		return string(lab.Scenario(t, first, second))
	}
	p.Write("server.mjs", server)
	p.Write(".abl/specs/phase1.md", "# Phase 1: One\n\n## Contracts\n\n- GET /1 → 200 with the text ok\n")
	p.Write(".abl/specs/phase2.md", "# Phase 2: Two\n\n## Contracts\n\n- GET /2 → 200 with the text ok\n")
	p.Write(".gitignore", ".env\n.abl/state.json\n.abl/lock\n.abl/logs/\n.abl/reports/\n.abl/project_map.txt\n"+
		".abl/work/\n.abl/tests/\n")
	p.Git("", "init", "-q", "-b", "main")
	p.Git("", "config", "user.name", "P")
	p.Git("", "config", "user.email", "p@example.com")
	origin = filepath.Join(t.TempDir(), "origin.git")
	p.Git("", "init", "-q", "--bare", "-b", "main", origin)
	p.Git("", "remote", "add", "origin", origin)
	return p, origin, func(hangs bool) {
		p.Write(".abl/scenario.yaml", scenario(hangs))
		p.Git("", "add", "-A")
		p.Git("", "commit", "-qm", "project")
		p.Git("", "push", "-q", "origin", "main")
	}
}

// freshClone returns a clone without history, like a runner's.
func freshClone(p *lab.Project, origin string) *lab.Project {
	p.Helper()
	other := *p
	other.Dir = filepath.Join(p.TempDir(), "runner")
	p.Git("", "clone", "-q", "--depth", "1", "file://"+origin, other.Dir)
	return &other
}

// killDuringCall sends SIGKILL to the abl that works on p, once a call runs.
func killDuringCall(p *lab.Project, call string, done <-chan struct{}) {
	for {
		var holder struct{ PID int }
		data, _ := os.ReadFile(filepath.Join(p.Dir, ".abl/lock"))
		_, err := os.Stat(filepath.Join(p.Dir, ".abl/logs/calls", call, "started"))
		if err == nil && json.Unmarshal(data, &holder) == nil && holder.PID > 0 {
			_ = syscall.Kill(holder.PID, syscall.SIGKILL)
			return
		}
		select {
		case <-done:
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// removeRemains removes what a killed abl has left on the engine, like the end of a hosted machine.
func removeRemains(p *lab.Project) { p.Run("clean") }

// commandsIn returns the lines that GitHub's runner treats as commands.
func commandsIn(log string) (all []string) {
	for line := range strings.Lines(log) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "::") && !strings.HasPrefix(line, "::group::") && line != "::endgroup::" ||
			strings.Contains(line, "##[") || strings.Contains(line, "##vso[") {
			all = append(all, line)
		}
	}
	return all
}

// TestActionUploadsNoLinks checks that the action removes links, because upload-artifact follows
// them.
func TestActionUploadsNoLinks(t *testing.T) {
	data, err := os.ReadFile("../../action.yml")
	var a action
	if err = errors.Join(err, yamlfile.Decode("action.yml", data, &a)); err != nil {
		t.Fatal(err)
	}
	gather := slices.IndexFunc(a.Runs.Steps, func(s actionStep) bool { return s.Name == "Gather page and logs" })
	dir, temp, runners := t.TempDir(), t.TempDir(), t.TempDir()
	program, err := filepath.Abs("testdata/scripts/lays-links-in-logs.sh")
	if err != nil {
		t.Fatal(err)
	}
	lay := exec.Command("sh", program, runners)
	step := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", a.Runs.Steps[gather].Run)
	step.Env = append(os.Environ(), "RUNNER_TEMP="+temp)
	for _, cmd := range []*exec.Cmd{lay, step} {
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	out, err := exec.Command("find", "-L", temp, "!", "-type", "d", "-printf", "%P\n").CombinedOutput() // like the upload
	got := strings.Fields(string(out))
	slices.Sort(got)
	want := []string{"abl/logs/calls/p1-build-1.1/outcome.json", "abl/logs/calls/p1-build-1.1/stdout"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("uploaded files: got %q, %v, want %q", got, err, want)
	}
	if data, err := os.ReadFile(filepath.Join(runners, "key")); err != nil || string(data) != "secret\n" {
		t.Errorf("the file behind a link: got %q, %v, want it unchanged", data, err)
	}
}

// TestAction runs action.yml twice and kills the first run. The second run continues from the
// commits that the first one has pushed.
func TestAction(t *testing.T) {
	lab.Long(t)
	p, origin, hang := ciProject(t, "verifier", "bot/")
	data, err := os.ReadFile("../../action.yml")
	if err != nil {
		t.Fatal(err)
	}
	job := func(inputs map[string]string) *runner {
		r := &runner{
			Project: freshClone(p, origin),
			inputs:  inputs,
			temp:    t.TempDir(),
			home:    t.TempDir(),
			path:    os.Getenv("PATH"),
			outputs: map[string]string{},
		}
		if err := yamlfile.Decode("action.yml", data, &r.action); err != nil {
			t.Fatal(err)
		}
		return r
	}
	hang(true)
	first := job(map[string]string{"version": "v1.2.3", "through": "true", "args": "--offline"})
	first.release("v1.2.3")
	over := make(chan struct{})
	go killDuringCall(first.Project, "p1-verify-1.1", over)
	code := first.play()
	close(over)
	if code != 137 || first.output("outcome") != "fault" {
		t.Fatalf("a killed run: got exit %d and outcome %q, want 137 and fault", code, first.output("outcome"))
	}
	removeRemains(first.Project)
	built := p.Git("", "--git-dir", origin, "rev-parse", "refs/heads/bot/phase1")

	hang(false)
	second := job(map[string]string{"through": "true", "args": "--offline"})
	second.source()
	if code := second.play(); code != 0 {
		t.Fatalf("the second run: got exit %d, want 0", code)
	}
	for name, want := range map[string]string{
		"outcome":  "passed",
		"cost_usd": "unknown",
		"report":   second.temp + "/abl/page.html",
	} {
		if got := second.output(name); got != want {
			t.Errorf("output %s: got %q, want %q", name, got, want)
		}
	}
	checkContinued(second.Project, origin, "bot/", built)
	if got := append(commandsIn(first.log.String()), commandsIn(second.log.String())...); len(got) > 0 {
		t.Errorf("commands for the runner: got %q, want none", got)
	}
	lacks(t, "the artifact of a killed run", strings.Join(first.uploaded, "\n"), "/p1-verify-1.1/")
	wants(t, "the artifact of a killed run", strings.Join(first.uploaded, "\n"), "/p1-build-1.1/stdout")
	wants(t, "the first log", first.log.String(), "::group::", "::endgroup::", `##vso\u005btask.complete]`)
	if got := calls(second.Project); strings.Contains(got, "p1-build") {
		t.Errorf("calls of the second run: got %q, want no p1-build, which the first run made", got)
	}
	second.Env = append(second.Env, "GITHUB_ACTIONS=true")
	for _, args := range [][]string{{"logs", "builder"}, {"logs", "verifier"}, {"report", "1"}, {"open", "2", "--diff"}} {
		r := second.Must(0, args...)
		if got := commandsIn(r.Stdout + r.Stderr); len(got) > 0 {
			t.Errorf("abl %v: got the commands %q, want none\n%s", args, got, r.Stdout)
		}
		if args[1] == "builder" {
			wants(t, "abl logs builder", r.Stdout, `##\u005berror]`)
		}
	}
	files := strings.Join(second.uploaded, "\n")
	wants(t, "the artifact", files, "/abl/junit.xml", "/abl/page.html", "/abl/reports/phase2/step-1.json",
		"/abl/logs/tokens.csv", "/stdout")
	summary, _ := os.ReadFile(filepath.Join(second.temp, "summary.md"))
	wants(t, "the summary", string(summary), "### abl phase 1", "### abl phase 2", "cost: ", "page.html",
		"| contract | says | step-1 | why |")
	junit, _ := os.ReadFile(filepath.Join(second.temp, "abl/junit.xml"))
	wants(t, "JUnit", string(junit), `<testsuite name="abl phase 1: One" `, `<testsuite name="abl phase 2: Two" `)
	lacks(t, "JUnit", string(junit), "<failure", "<error")
	checkNothingLeft(second.Project)

	t.Run("another-archive", func(t *testing.T) {
		bad := job(map[string]string{"version": "v1.2.3"})
		bad.release("v1.2.3")
		sums := filepath.Join(bad.temp, "server/o/abl/releases/download/v1.2.3/SHA256SUMS")
		if err := os.WriteFile(sums, []byte(strings.Repeat("0", 64)+"  abl-v1.2.3-linux-"+runtime.GOARCH+".tar.gz\n"),
			0o644); err != nil {
			t.Fatal(err)
		}
		if code := bad.play(); code == 0 || strings.Contains(bad.log.String(), "phase 1") {
			t.Errorf("an archive with another hash: got exit %d, want an error before phase 1:\n%s", code, bad.log.String())
		}
	})
}

// checkContinued checks that a job continued from a pushed commit, and pushed two passing phases
// with one call of each role.
func checkContinued(p *lab.Project, origin, prefix, built string) {
	p.Helper()
	var all []string
	for _, row := range p.Ledger() {
		all = append(all, row["call_id"])
	}
	want := "p1-build-1.1 p1-verify-1.1 p2-build-1.1 p2-verify-1.1"
	if got := strings.Join(slices.Compact(all), " "); got != want {
		p.Errorf("calls of the ledger: got %q, want %q", got, want)
	}
	p.Git("", "--git-dir", origin, "merge-base", "--is-ancestor", built, "refs/heads/"+prefix+"phase2")
	later := freshClone(p, origin)
	later.Git("", "fetch", "-q", "origin", "+refs/abl/*:refs/abl/*", "+refs/heads/"+prefix+"*:refs/remotes/origin/"+prefix+"*")
	wants(p, "a third job", later.Must(0, "status").Stdout, "1      passed", "2      passed")
}

// TestDocsCI runs the shell pipeline of docs/ci.md in the same way.
func TestDocsCI(t *testing.T) {
	lab.Long(t)
	p, origin, hang := ciProject(t, "builder", "abl/")
	page, err := os.ReadFile("../../docs/ci.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks, heard := map[string]string{}, filepath.Join(t.TempDir(), "heard")
	for _, b := range regexp.MustCompile("(?s)```sh (\\w+)\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		blocks[b[1]] = b[2]
	}
	job := func(dies bool) (at *lab.Project, code int) {
		at = freshClone(p, origin)
		over := make(chan struct{})
		defer close(over)
		for _, name := range []string{"pipeline", "always"} {
			cmd := exec.Command("sh", "-c", blocks[name])
			cmd.Dir, cmd.Env = at.Dir, append(at.Cmd().Environ(),
				"PATH="+filepath.Dir(lab.Bin(t, "abl"))+":"+os.Getenv("PATH"), "ABL_OFFLINE=true", "ABL_NOTIFY_COMMAND=cat "+
					">>"+heard)
			if name == "pipeline" && dies {
				go killDuringCall(at, "p1-build-1.1", over)
			}
			out, err := cmd.CombinedOutput()
			t.Logf("%s: %v\n%s", name, err, out)
			if code == 0 {
				code = cmd.ProcessState.ExitCode()
			}
		}
		return at, code
	}
	hang(true)
	first, code := job(true)
	if code != 137 {
		t.Fatalf("a killed run: got exit %d, want 137", code)
	}
	wants(t, "JUnit of a killed run", first.Read("junit.xml"), "abl was stopped before the run ended")
	removeRemains(first)
	built := p.Git("", "--git-dir", origin, "rev-parse", "refs/heads/abl/phase1")
	hang(false)
	second, code := job(false)
	if code != 0 {
		t.Fatalf("the second run: got exit %d, want 0", code)
	}
	checkContinued(second, origin, "abl/", built)
	checkNothingLeft(second)
	got, _ := os.ReadFile(heard)
	if n := strings.Count(string(got), `{"event":"passed"`); n != 2 || strings.Count(string(got), "\n") != 2 {
		t.Errorf("events of the notify command: got %s, want two of passed", got)
	}
}
