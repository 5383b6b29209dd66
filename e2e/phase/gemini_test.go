package phase

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"abl/internal/state"
	"abl/internal/testing/lab"
)

// The real Gemini CLI plays the demo's first phase against a scripted model in a container. Only
// the model is not real. In make test the phase ends after the first iteration, in which a contract fails.
func TestGeminiPlaysTheDemo(t *testing.T) {
	turn(t)
	const key = "a-key-of-nobody-4711"
	p := lab.Demo(t)
	// The CLI refuses to write build files with its own tool. The gate delays the end of the call
	// while the test inspects its containers. A paused CLI would lose its connections.
	gate := strings.NewReplacer("at-GATE", "at", "go-GATE", "go").Replace(lab.File(t, "steps/gate.sh"))
	first := fmt.Sprintf("    steps:\n      - {run: %q, expect: 0}\n      - {write: package.json, text: '{}'}\n", gate)
	p.Write("scenario.yaml", strings.Replace(p.Read("scenario.yaml"), "    steps:\n", first, 1))
	modelServer(t, p)
	p.Write(".abl/config.yaml", p.Read(".abl/config.yaml")+"\nnetwork: {egress: "+modelNet(p)+"}\n")
	p.Env = []string{"GEMINI_API_KEY=" + key, "GOOGLE_GEMINI_BASE_URL=http://model:9100",
		"ABL_VERIFY_STRENGTH_TIME=0"} // TestDemo has the same tests
	iterations, code, verdict, tag := 2, 0, "fail pass", "phase1/passed"
	if testing.Short() {
		p.Env = append(p.Env, "ABL_VERIFY_EVIDENCE=off", "ABL_LOOP_MAX_VERIFIER_ITERATIONS=1")
		iterations, code, verdict, tag = 1, 3, "fail", ""
	}

	dry := p.Must(0, "phase", "1", "--dry-run", "--agent", "gemini")
	wants(t, "--dry-run", dry.Stdout, "agent gemini, model gemini-3.8-flash", "given only to the gateway", "gateway on: ",
		modelNet(p))

	looked := false
	r := watch(p, func(e state.Event, _ *os.Process) {
		if e.Kind == state.Action && !looked {
			until(p, "src/at")
			checkContainers(p, e.Call, key)
			looked = true
			p.Write("src/go", "")
		}
	}, "phase", "1", "--agent", "gemini")
	if r.Code != code || !looked {
		t.Fatalf("got exit %d, looked at the containers: %v, want %d and true: %s%s", r.Code, looked, code, r.Stdout, r.Stderr)
	}
	all := events(t, r)
	if got, want := verdicts(all), verdict; got != want {
		t.Errorf("verdicts: got %q, want %q: %s",
			got, want, p.Git(".abl/tests", "log", "-p", "--format=%s", "--", "failed_specs.md"))
	}
	for _, e := range of(all, state.CallStart) {
		if e.Agent != "gemini" || e.Model != "gemini-3.8-flash" || e.Round != 1 {
			t.Errorf("the start of a call: got %+v, want agent gemini with model gemini-3.8-flash in round 1", e)
		}
	}
	if n := len(of(all, state.Action)); n < 10*iterations {
		t.Errorf("actions: got %d, want %d or more", n, 10*iterations)
	}
	for _, e := range of(all, state.PhaseStart) {
		if e.Round != 1 {
			t.Errorf("round of phase_start: got %d, want 1", e.Round)
		}
		wants(t, "the line before the first call", e.Text,
			"builder gemini (gemini-3.8-flash), GEMINI_API_KEY from the environment, given only to the gateway", "no limit")
	}
	commits := func(job string) string {
		var all []string
		for n := range iterations {
			all = append(all, fmt.Sprintf("phase1/%s/step-%d", job, n+1))
		}
		return strings.Join(all, "\n")
	}
	demoHistories(p, tag, map[string]string{"src": commits("build"), ".abl/tests": commits("verify")})
	for _, dir := range []string{"src", ".abl/tests"} {
		lacks(p, "the files of "+dir, p.Git(dir, "ls-files"), ".gemini", ".abl-run", ".abl-append")
	}
	if !testing.Short() {
		checkNoDoubts(p, auditRecord(p, 1, 2))
	}
	wants(t, "the files of src", p.Git("src", "ls-files"), "package.json")
	gemini := programs["gemini"]
	rows := ledgerRows(p)
	demoLedger(t, rows, iterations, gemini, gemini)
	for i, row := range rows {
		if row["session_id"] == "" {
			t.Errorf("row %d: got no session_id, want one: %v", i+1, row)
		}
	}
	for _, dir := range []string{"src", ".abl/tests"} {
		lacks(t, "the history of "+dir, p.Git(dir, "log", "-p", "--all"), key)
	}
	if files := holding(t, p.Dir, key); len(files) > 0 {
		t.Errorf("files with the key: got %v, want none", files)
	}
	lacks(t, "abl's output", r.Stdout+r.Stderr+dry.Stdout, key)
	checkNothingLeft(p)
	t.Logf("phase 1 by the Gemini CLI took %v", r.Took)
}

// modelNet returns the name of the network with the model, the roles' egress.
func modelNet(p *lab.Project) string { return "abl-test-" + filepath.Base(filepath.Dir(p.Dir)) }

// modelServer starts the scripted model with the project's scenario.
func modelServer(t *testing.T, p *lab.Project) {
	t.Helper()
	docker(t, "network", "create", "--label", "abl.project=test-phase", modelNet(p))
	t.Cleanup(func() { docker(t, "network", "rm", modelNet(p)) })
	if err := os.Chmod(p.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	build := exec.Command("go", "build", "-o", bin, "abl/internal/testing/modelserver/abl-model")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	id := docker(t, "run", "-d", "--label", "abl.project=test-phase", "--network", modelNet(p), "--network-alias", "model",
		"-v", p.Dir+":/s:ro", "-v", bin+":/m:ro", toolsImage(p), "/m/abl-model", "/s/scenario.yaml")
	t.Cleanup(func() { docker(t, "rm", "-f", id) })
}

// demoHistories checks the commits and tags of both histories. want has the subjects of the
// commits, by directory.
func demoHistories(p *lab.Project, tags string, want map[string]string) {
	p.Helper()
	for dir, commits := range want {
		if got := p.Git(dir, "log", "--reverse", "--format=%s"); got != commits {
			p.Errorf("%s: got commits\n%s\nwant\n%s", dir, got, commits)
		}
		if got := p.Git(dir, "status", "--porcelain"); got != "" {
			p.Errorf("changes in %s: got %s, want none", dir, got)
		}
		p.Git(dir, "fsck", "--strict")
		if got := p.Git(dir, "tag"); got != tags {
			p.Errorf("%s: got tags %q, want %q", dir, got, tags)
		}
	}
}

// holding returns the files below dir, histories and records included, that contain text.
func holding(t *testing.T, dir, text string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), text) {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
