// Package crash kills the real abl at every named place and at random moments, and interrupts and
// freezes it. Each time the result must be the same as without the disturbance.
package crash

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"abl/internal/audit"
	"abl/internal/state"
	"abl/internal/testing/lab"
)

// slots limits the number of concurrent phases, because each needs the engine.
var slots = make(chan struct{}, 3)

// scene is a project whose phase passes quickly.
type scene struct {
	*lab.Project
	points string // directory of the failpoint files
	steps  int    // number of iterations until the pass
}

// newScene returns a scene that passes in its first iteration. That is all that most tests
// disturb, and costs half the engine's work; with ABL_SOAK it takes two. gates replaces the gate
// lines of the scenario with steps, by role.
func newScene(t *testing.T, gates map[string]string) *scene {
	t.Helper()
	return sceneOf(t, shortSteps(), gates)
}

// newLong returns a scene that fails once and then passes.
func newLong(t *testing.T, gates map[string]string) *scene {
	t.Helper()
	return sceneOf(t, 2, gates)
}

func shortSteps() int {
	if os.Getenv("ABL_SOAK") != "" {
		return 2
	}
	return 1
}

// nightSteps returns two iterations in make test-all, and one in make test.
func nightSteps() int {
	if testing.Short() {
		return shortSteps()
	}
	return 2
}

// sceneOf waits for a slot and creates the scene.
func sceneOf(t *testing.T, steps int, gates map[string]string) *scene {
	t.Helper()
	slots <- struct{}{}
	t.Cleanup(func() { <-slots })
	p := lab.From(t, os.DirFS("testdata/project"))
	if steps == 1 {
		p.Write("scenario.yaml", lab.File(t, "short.yaml"))
	}
	// Git ignores the files of a gate, so that a test may write them while no call runs.
	p.Write("src/.gitignore", "/.gitignore\n/at\n/go\n")
	for role, step := range gates {
		old := p.Read("scenario.yaml")
		text := strings.Replace(old, "# gate "+role+"\n", "- "+step+"\n", 1)
		if text == old {
			t.Fatalf("the scenario has no gate for the %s", role)
		}
		p.Write("scenario.yaml", text)
	}
	s := &scene{p, t.TempDir(), steps}
	p.Env = []string{"ABL_FAILPOINT_DIR=" + s.points}
	return s
}

// in returns the scene for a subtest.
func (s *scene) in(t *testing.T) *scene {
	inner, p := *s, *s.Project
	p.TB, inner.Project = t, &p
	return &inner
}

// command returns abl with these failpoints set.
func (s *scene) command(points string, args ...string) *exec.Cmd {
	cmd := s.Cmd(args...)
	cmd.Env = append(cmd.Env, "ABL_FAILPOINTS="+points)
	return cmd
}

// runUntilKilled runs the phase until a failpoint kills abl.
func (s *scene) runUntilKilled(points string) {
	s.Helper()
	cmd := s.command(points, "phase", "1")
	out, err := cmd.CombinedOutput()
	if status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGKILL {
		s.Fatalf("end of abl with %s: got %v, want %v: %s", points, err, syscall.SIGKILL, out)
	}
}

// finish runs the phase to its end, which must be a pass.
func (s *scene) finish() lab.Result {
	s.Helper()
	r := s.Must(0, "phase", "1", "--json")
	s.checkNothingLeft()
	return r
}

// checkNothingLeft checks that nothing is left on the engine and that no lease is left.
func (s *scene) checkNothingLeft() {
	s.Helper()
	if left := s.Left(); left != "" {
		s.Errorf("left on the engine: got %s, want nothing", left)
	}
	if strings.Contains(s.Read(".abl/state.json"), `"lease"`) {
		s.Error("the lease in state.json: got one, want none")
	}
}

// print returns all results of a run that a crash must not change.
func (s *scene) print() string {
	s.Helper()
	var b strings.Builder
	for _, dir := range []string{"src", ".abl/tests"} {
		fmt.Fprintf(&b, "%s\n%s\n",
			dir, s.Git(dir, "log", "--reverse", "--format=%s, tree %T, call %(trailers:key=Abl-Call,valueonly,separator=%x20)"))
		fmt.Fprintf(&b, "commits without a parent: %d\n",
			strings.Count(s.Git(dir, "rev-list", "--max-parents=0", "--all")+"\n", "\n"))
		fmt.Fprintf(&b, "tags: %s\n", s.Git(dir, "for-each-ref", "--format=%(refname) at %(subject)%(*subject)", "refs/tags"))
		fmt.Fprintf(&b, "status: %q\n", s.Git(dir, "status", "--porcelain"))
		// abl writes neither.
		s.Git(dir, "-c", "core.commitGraph=false", "-c", "core.multiPackIndex=false", "fsck", "--strict")
		s.files(&b, dir)
	}
	s.ledger(&b)
	s.state(&b)
	calls, err := os.ReadDir(filepath.Join(s.Dir, ".abl/logs/calls"))
	if err != nil {
		s.Fatal(err)
	}
	for _, c := range calls {
		fmt.Fprintln(&b, "record", c.Name())
	}
	for step := range s.steps {
		r, err := audit.Load(state.NewProject(s.Dir, "src", ".abl/tests"), 1, step+1)
		if err != nil {
			s.Error(err)
		}
		fmt.Fprintln(&b, "audit", r.Step, r.Verdict, r.Status, len(r.Contracts), len(r.Calls), r.Commits.Tag)
	}
	return b.String()
}

// files prints the files of a workspace with their modes and owners.
func (s *scene) files(b *strings.Builder, dir string) {
	err := filepath.WalkDir(filepath.Join(s.Dir, dir), func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.Name() == ".git" {
			return fs.SkipDir
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(s.Dir, path)
		fmt.Fprintf(b, "%v %d %s\n", info.Mode(), info.Sys().(*syscall.Stat_t).Uid, rel)
		return nil
	})
	if err != nil {
		s.Fatal(err)
	}
}

func (s *scene) ledger(b *strings.Builder) {
	rows, err := csv.NewReader(strings.NewReader(s.Read(".abl/logs/tokens.csv"))).ReadAll()
	if err != nil {
		s.Fatal(err)
	}
	for _, row := range rows {
		for i, name := range rows[0] {
			if name != "timestamp" && name != "session_id" && name != "duration_ms" {
				fmt.Fprintf(b, "%s ", row[i])
			}
		}
		b.WriteString("\n")
	}
}

func (s *scene) state(b *strings.Builder) {
	var state struct {
		Phases map[string]map[string]any `json:"phases"`
	}
	if err := json.Unmarshal([]byte(s.Read(".abl/state.json")), &state); err != nil {
		s.Fatal(err)
	}
	for _, phase := range state.Phases {
		for _, varying := range []string{"started", "ended", "src_commit", "tests_commit"} {
			delete(phase, varying)
		}
		for _, record := range phase["history"].([]any) {
			for _, varying := range []string{"when", "src_commit", "tests_commit"} {
				delete(record.(map[string]any), varying)
			}
		}
	}
	text, err := json.MarshalIndent(state, "", " ")
	if err != nil {
		s.Fatal(err)
	}
	fmt.Fprintf(b, "%s\n", text)
}
