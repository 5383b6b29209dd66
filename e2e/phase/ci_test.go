package phase

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
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

// action is what action.yml may say here, and nothing else.
type action struct {
	Name        string `yaml:"name"`
	Description string `yaml:"description"`
	Inputs      map[string]struct {
		Description string `yaml:"description"`
		Default     string `yaml:"default"`
	} `yaml:"inputs"`
	Outputs map[string]struct {
		Description string `yaml:"description"`
		Value       string `yaml:"value"`
	} `yaml:"outputs"`
	Runs struct {
		Using string       `yaml:"using"`
		Steps []actionStep `yaml:"steps"`
	} `yaml:"runs"`
}

type actionStep struct {
	Name  string            `yaml:"name"`
	ID    string            `yaml:"id"`
	If    string            `yaml:"if"`
	Uses  string            `yaml:"uses"`
	With  map[string]string `yaml:"with"`
	Shell string            `yaml:"shell"`
	Run   string            `yaml:"run"`
	Dir   string            `yaml:"working-directory"`
	Env   map[string]string `yaml:"env"`
}

// runner plays the steps of a composite action in a clone, as GitHub's does: files of its own for
// paths and outputs, bash with its options, what failed skips all but always().
type runner struct {
	*lab.Project
	action   action
	inputs   map[string]string
	temp     string
	home     string // of the action
	path     string
	outputs  map[string]string // steps.ID.outputs.NAME
	uploaded []string          // files of the artifact
	log      bytes.Buffer
}

var expression = regexp.MustCompile(`\$\{\{ *([^}]*?) *\}\}`)

// fill replaces each ${{ … }}.
func (r *runner) fill(text string) string {
	return expression.ReplaceAllStringFunc(text, func(all string) string {
		name := expression.FindStringSubmatch(all)[1]
		switch kind, rest, _ := strings.Cut(name, "."); {
		case kind == "inputs":
			if v, ok := r.inputs[rest]; ok {
				return v
			}
			in, ok := r.action.Inputs[rest]
			if !ok {
				r.Fatalf("action.yml has no input %q", rest)
			}
			return in.Default
		case name == "github.action_path":
			return r.home
		case name == "github.action_repository": // a step's environment has it empty
			return "o/abl"
		case name == "runner.temp":
			return r.temp
		case kind == "steps":
			return r.outputs[name]
		}
		r.Fatalf("nobody knows ${{ %s }}", name)
		return ""
	})
}

// wanted says whether a step is played.
func (r *runner) wanted(s actionStep, failed bool) bool {
	switch s.If {
	case "":
		return !failed
	case "always()":
		return true
	case "inputs.version == ''":
		return !failed && r.fill("${{ inputs.version }}") == ""
	}
	r.Fatalf("%s: nobody knows if: %s", s.Name, s.If)
	return false
}

// play runs all steps and returns what the job would end with.
func (r *runner) play() (code int) {
	r.Helper()
	for i, s := range r.action.Runs.Steps {
		if !r.wanted(s, code != 0) {
			continue
		}
		if s.Uses != "" {
			r.use(s)
			continue
		}
		if s.Shell != "bash" {
			r.Fatalf("%s: a step of a composite action names its shell, got %q", s.Name, s.Shell)
		}
		if c := r.run(s, fmt.Sprintf("%s/step%d", r.temp, i)); c != 0 && code == 0 {
			code = c
		}
	}
	return code
}

// use stands in for an action of others by what its page says that it does.
func (r *runner) use(s actionStep) {
	switch name, _, _ := strings.Cut(s.Uses, "@"); name {
	case "actions/setup-go":
		if _, err := os.Stat(r.fill(s.With["go-version-file"])); err != nil {
			r.Error(err)
		}
	case "actions/upload-artifact":
		r.uploaded = nil
		for place := range strings.Lines(r.fill(s.With["path"])) {
			place = strings.TrimSpace(place)
			if !filepath.IsAbs(place) {
				place = filepath.Join(r.Dir, place)
			}
			_ = filepath.WalkDir(place, func(path string, d os.DirEntry, err error) error {
				if err == nil && !d.IsDir() && (s.With["include-hidden-files"] == "true" || !strings.Contains(path, "/.")) {
					r.uploaded = append(r.uploaded, path)
				}
				return nil
			})
		}
	default:
		r.Fatalf("nobody stands in for %s", s.Uses)
	}
}

func (r *runner) run(s actionStep, file string) int {
	r.Helper()
	for name, text := range map[string]string{".sh": s.Run, ".path": "", ".out": ""} {
		if err := os.WriteFile(file+name, []byte(text), 0o644); err != nil {
			r.Fatal(err)
		}
	}
	cmd := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", file+".sh")
	cmd.Dir = filepath.Join(r.Dir, r.fill(s.Dir))
	cmd.Env = append(r.Cmd().Environ(), "PATH="+r.path, "GITHUB_ACTIONS=true", "GITHUB_ACTION_PATH="+r.home, "RUNNER_TEMP="+r.temp,
		"GITHUB_PATH="+file+".path", "GITHUB_OUTPUT="+file+".out", "GITHUB_STEP_SUMMARY="+r.temp+"/summary.md",
		"GITHUB_SERVER_URL=file://"+r.temp+"/server", "GITHUB_ACTION_REPOSITORY=")
	for name, value := range s.Env {
		cmd.Env = append(cmd.Env, name+"="+r.fill(value))
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	r.Logf("%s (%v)\n%s", s.Name, err, out.String())
	r.log.Write(out.Bytes())
	if ended := new(exec.ExitError); err != nil && !errors.As(err, &ended) {
		r.Fatal(err)
	}
	if more, _ := os.ReadFile(file + ".path"); len(more) > 0 {
		r.path = strings.TrimSpace(string(more)) + ":" + r.path
	}
	data, _ := os.ReadFile(file + ".out")
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		r.outputs["steps."+s.ID+".outputs."+name] = value
	}
	return cmd.ProcessState.ExitCode()
}

// output is what the action hands on.
func (r *runner) output(name string) string { return r.fill(r.action.Outputs[name].Value) }

// release lays out what a release of abl has, at the address that the action asks.
func (r *runner) release(version string) {
	r.Helper()
	dir := filepath.Join(r.temp, "server/o/abl/releases/download", version)
	top := fmt.Sprintf("abl-%s-linux-%s", version, runtime.GOARCH)
	cmd := exec.Command("sh", "testdata/scripts/packs-a-release.sh", dir, top, filepath.Dir(lab.Bin(r, "abl")))
	if out, err := cmd.CombinedOutput(); err != nil {
		r.Fatalf("%v: %s", err, out)
	}
	data, err := os.ReadFile(filepath.Join(dir, top+".tar.gz"))
	if err != nil {
		r.Fatal(err)
	}
	sums := fmt.Sprintf("%x  abl-other.tar.gz\n%x  %s.tar.gz\n", sha256.Sum256(nil), sha256.Sum256(data), top)
	if err := os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(sums), 0o644); err != nil {
		r.Fatal(err)
	}
}

// source is the action's own folder, where make builds what is built already.
func (r *runner) source() {
	r.Helper()
	for name, text := range map[string]string{"go.mod": "module abl\n", "Makefile": "build:\n\tcp -r " + filepath.Dir(lab.Bin(r, "abl")) + " bin\n"} {
		if err := os.WriteFile(filepath.Join(r.home, name), []byte(text), 0o644); err != nil {
			r.Fatal(err)
		}
	}
}

// wordy is what an agent prints to command a runner.
var wordy = []string{"::set-output name=outcome::passed", " ::add-mask::a", "##[error]done", "::stop-commands::x", "x ##vso[task.complete]"}

// ciProject is a repository with two phases, and its bare origin. The role hangs while it shall.
func ciProject(t *testing.T, role string) (p *lab.Project, origin string, hang func(bool)) {
	t.Helper()
	p = newProject(t, nodeApp+"source: {repo: .}\nverify: {evidence: required, strength_time: 0}\n")
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
	p.Write(".gitignore", ".env\n.abl/state.json\n.abl/lock\n.abl/logs/\n.abl/reports/\n.abl/project_map.txt\n.abl/work/\n.abl/tests/\n")
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

// fresh is a clone as a runner makes it, without history.
func fresh(p *lab.Project, origin string) *lab.Project {
	p.Helper()
	other := *p
	other.Dir = filepath.Join(p.TempDir(), "runner")
	p.Git("", "clone", "-q", "--depth", "1", "file://"+origin, other.Dir)
	return &other
}

// killed kills the abl that works on p with SIGKILL, once a call runs.
func killed(p *lab.Project, call string, done <-chan struct{}) {
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

// gone takes away what a killed abl has left on the engine, as the end of a hosted machine does.
func gone(p *lab.Project) { p.Run("clean") }

// commandsIn are the lines that GitHub's runner would take for a command.
func commandsIn(log string) (all []string) {
	for line := range strings.Lines(log) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "::") && !strings.HasPrefix(line, "::group::") && line != "::endgroup::" || strings.Contains(line, "##[") || strings.Contains(line, "##vso[") {
			all = append(all, line)
		}
	}
	return all
}

// TestActionUploadsNoLinks: upload-artifact follows links, so none is left for it.
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
	out, err := exec.Command("find", "-L", temp, "!", "-type", "d", "-printf", "%P\n").CombinedOutput() // as the upload looks
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

// TestAction plays action.yml twice, with a kill in the first run: the second goes on from what
// the first has pushed.
func TestAction(t *testing.T) {
	lab.Long(t)
	p, origin, hang := ciProject(t, "verifier")
	data, err := os.ReadFile("../../action.yml")
	if err != nil {
		t.Fatal(err)
	}
	job := func(inputs map[string]string) *runner {
		r := &runner{Project: fresh(p, origin), inputs: inputs, temp: t.TempDir(), home: t.TempDir(), path: os.Getenv("PATH"), outputs: map[string]string{}}
		if err := yamlfile.Decode("action.yml", data, &r.action); err != nil {
			t.Fatal(err)
		}
		return r
	}
	hang(true)
	first := job(map[string]string{"version": "v1.2.3", "through": "true", "args": "--offline"})
	first.release("v1.2.3")
	over := make(chan struct{})
	go killed(first.Project, "p1-verify-1.1", over)
	code := first.play()
	close(over)
	if code != 137 || first.output("outcome") != "fault" {
		t.Fatalf("a killed run: got exit %d and outcome %q, want 137 and fault", code, first.output("outcome"))
	}
	gone(first.Project)
	built := p.Git("", "--git-dir", origin, "rev-parse", "refs/heads/abl/phase1")

	hang(false)
	second := job(map[string]string{"through": "true", "args": "--offline"})
	second.source()
	if code := second.play(); code != 0 {
		t.Fatalf("the second run: got exit %d, want 0", code)
	}
	for name, want := range map[string]string{"outcome": "passed", "cost_usd": "unknown", "report": second.temp + "/abl/page.html"} {
		if got := second.output(name); got != want {
			t.Errorf("output %s: got %q, want %q", name, got, want)
		}
	}
	wentOn(second.Project, origin, built)
	if got := append(commandsIn(first.log.String()), commandsIn(second.log.String())...); len(got) > 0 {
		t.Errorf("commands that the runner obeys: got %q, want none", got)
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
	wants(t, "the artifact", files, "/abl/junit.xml", "/abl/page.html", "/abl/reports/phase2/step-1.json", "/abl/logs/tokens.csv", "/stdout")
	summary, _ := os.ReadFile(filepath.Join(second.temp, "summary.md"))
	wants(t, "the summary", string(summary), "### abl phase 1", "### abl phase 2", "cost: ", "page.html", "| contract | says | step-1 | why |")
	junit, _ := os.ReadFile(filepath.Join(second.temp, "abl/junit.xml"))
	wants(t, "JUnit", string(junit), `<testsuite name="abl phase 1: One" `, `<testsuite name="abl phase 2: Two" `)
	lacks(t, "JUnit", string(junit), "<failure", "<error")
	noLeftovers(second.Project)

	t.Run("another-archive", func(t *testing.T) {
		bad := job(map[string]string{"version": "v1.2.3"})
		bad.release("v1.2.3")
		sums := filepath.Join(bad.temp, "server/o/abl/releases/download/v1.2.3/SHA256SUMS")
		if err := os.WriteFile(sums, []byte(strings.Repeat("0", 64)+"  abl-v1.2.3-linux-"+runtime.GOARCH+".tar.gz\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if code := bad.play(); code == 0 || strings.Contains(bad.log.String(), "phase 1") {
			t.Errorf("an archive with another hash: got exit %d, want an error before phase 1:\n%s", code, bad.log.String())
		}
	})
}

// wentOn wants a job to have gone on from a commit that was pushed, and to have pushed two phases
// that passed, by one call of each role.
func wentOn(p *lab.Project, origin, built string) {
	p.Helper()
	var all []string
	for _, row := range p.Ledger() {
		all = append(all, row["call_id"])
	}
	want := "p1-build-1.1 p1-verify-1.1 p2-build-1.1 p2-verify-1.1"
	if got := strings.Join(slices.Compact(all), " "); got != want {
		p.Errorf("calls of the ledger: got %q, want %q", got, want)
	}
	p.Git("", "--git-dir", origin, "merge-base", "--is-ancestor", built, "refs/heads/abl/phase2")
	later := fresh(p, origin)
	later.Git("", "fetch", "-q", "origin", "+refs/abl/*:refs/abl/*", "+refs/heads/abl/*:refs/remotes/origin/abl/*")
	wants(p, "a third job", later.Must(0, "status").Stdout, "1      passed", "2      passed")
}

// TestDocsCI runs the shell pipeline of docs/ci.md likewise.
func TestDocsCI(t *testing.T) {
	lab.Long(t)
	p, origin, hang := ciProject(t, "builder")
	page, err := os.ReadFile("../../docs/ci.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks, heard := map[string]string{}, filepath.Join(t.TempDir(), "heard")
	for _, b := range regexp.MustCompile("(?s)```sh (\\w+)\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		blocks[b[1]] = b[2]
	}
	job := func(dies bool) (at *lab.Project, code int) {
		at = fresh(p, origin)
		over := make(chan struct{})
		defer close(over)
		for _, name := range []string{"pipeline", "always"} {
			cmd := exec.Command("sh", "-c", blocks[name])
			cmd.Dir, cmd.Env = at.Dir, append(at.Cmd().Environ(), "PATH="+filepath.Dir(lab.Bin(t, "abl"))+":"+os.Getenv("PATH"), "ABL_OFFLINE=true", "ABL_NOTIFY_COMMAND=cat >>"+heard)
			if name == "pipeline" && dies {
				go killed(at, "p1-build-1.1", over)
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
	wants(t, "JUnit of a killed run", first.Read("junit.xml"), "abl was stopped before it could say how the run ended")
	gone(first)
	built := p.Git("", "--git-dir", origin, "rev-parse", "refs/heads/abl/phase1")
	hang(false)
	second, code := job(false)
	if code != 0 {
		t.Fatalf("the second run: got exit %d, want 0", code)
	}
	wentOn(second, origin, built)
	noLeftovers(second)
	got, _ := os.ReadFile(heard)
	if n := strings.Count(string(got), `{"event":"passed"`); n != 2 || strings.Count(string(got), "\n") != 2 {
		t.Errorf("events that the notify command got: got %s, want two of passed", got)
	}
}
