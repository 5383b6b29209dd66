// Package lab is where end-to-end tests run the real abl, as a process of its
// own, on a real engine: it builds the programs once, makes projects, and sees
// to it that nothing is left behind.
package lab

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"abl"
)

// Off is the setting with which a person runs the tests without an engine.
const Off = "ABL_TEST_ENGINE"

// Engine says that a test needs a container engine. Without one it fails,
// unless the person switched the engine's tests off.
func Engine(t testing.TB) {
	t.Helper()
	if os.Getenv(Off) == "off" {
		t.Skipf("%s=off: this test needs a container engine", Off)
	}
	if err := answers(); err != nil {
		t.Fatalf("no container engine answers (start one with scripts/engine.sh, or set %s=off): %v", Off, err)
	}
}

// answers asks the engine once for all tests of a package.
var answers = sync.OnceValue(func() error {
	out, err := exec.Command("docker", "version").CombinedOutput()
	if err == nil || socketAnswers() {
		return nil
	}
	return fmt.Errorf("%w: %s", err, out)
})

// Long says that a test takes long for what it alone shows: `make test` leaves it out, and
// `make test-all` runs it.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("only in make test-all")
	}
}

// Local says that a test needs what only an engine on this machine itself has; under
// the build tag portable no engine counts as that.
func Local(t testing.TB) {
	t.Helper()
	if Portable {
		t.Skip("built to take no engine for one on this machine")
	}
}

// WayOut says that a test needs a registry of this machine's; an engine of
// scripts/engines.sh, which stands in a network of its own, comes to none.
func WayOut(t testing.TB) {
	t.Helper()
	if os.Getenv("ABL_TEST_WAY_OUT") == "none" {
		t.Skip("the containers of this engine have no way out (scripts/engines.sh)")
	}
}

func socketAnswers() bool {
	_, err := os.Stat("/var/run/docker.sock")
	return err == nil
}

var build = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv("ABL_BIN"); dir != "" {
		return dir, nil
	}
	// One folder for all of this tree: the packages' tests run side by side, each
	// puts what it built in place of the same.
	tree, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("abl-lab-%d-%x", os.Getuid(), sha256.Sum256(tree))[:40])
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for _, name := range []string{"abl", "abl-cmd", "abl-gateway"} {
		fresh := filepath.Join(dir, fmt.Sprintf("%s.%d", name, os.Getpid()))
		cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", fresh, "abl/cmd/"+name)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if name != "abl" {
			cmd.Env = append(cmd.Env, "GOOS=linux") // it runs in containers
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", errors.New(string(out))
		}
		if err := os.Rename(fresh, filepath.Join(dir, name)); err != nil {
			return "", err
		}
	}
	return dir, nil
})

// Bin is the path of a program, built from this tree: abl, abl-cmd or
// abl-gateway. ABL_BIN names a directory where they stand already.
func Bin(t testing.TB, name string) string {
	t.Helper()
	dir, err := build()
	if err != nil {
		t.Fatalf("cannot build: %v", err)
	}
	return filepath.Join(dir, name)
}

// Env is this process's environment, in which abl's own programs are those of Bin.
func Env(t testing.TB) func(string) string {
	t.Helper()
	programs := map[string]string{"ABL_HELPER": Bin(t, "abl-cmd"), "ABL_GATEWAY": Bin(t, "abl-gateway")}
	return func(name string) string { return cmp.Or(programs[name], os.Getenv(name)) }
}

// Project is a project in a directory of its own.
type Project struct {
	testing.TB
	Dir string
	Env []string // beyond the test's own, which is stripped of ABL_* and keys
}

// Demo is a new copy of the demo.
func Demo(t testing.TB) *Project { return From(t, abl.Demo()) }

// From is a new project with these files. When the test ends the engine must
// hold nothing of it.
func From(t testing.TB, files fs.FS) *Project {
	t.Helper()
	p := &Project{TB: t, Dir: t.TempDir()}
	if err := os.CopyFS(p.Dir, files); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if r := p.Run("clean"); r.Code != 0 {
			t.Errorf("abl clean: exit %d: %s", r.Code, r.Stderr)
		}
	})
	return p
}

// Write puts a file into the project.
func (p *Project) Write(name, text string) {
	p.Helper()
	path := filepath.Join(p.Dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		p.Fatal(err)
	}
}

// Read is a file of the project; "" when it is not there.
func (p *Project) Read(name string) string {
	data, err := os.ReadFile(filepath.Join(p.Dir, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.Fatal(err)
	}
	return string(data)
}

// Result is how a run of abl ended.
type Result struct {
	Code           int // -1 when a signal ended it
	Stdout, Stderr string
	Took           time.Duration
}

// Exists says whether something of this name is in the project.
func (p *Project) Exists(name string) bool {
	_, err := os.Lstat(filepath.Join(p.Dir, name))
	return err == nil
}

// Cmd is abl with these arguments in the project, not started.
func (p *Project) Cmd(args ...string) *exec.Cmd {
	cmd := exec.Command(Bin(p, "abl"), args...)
	cmd.Dir = p.Dir
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, "ABL_") && !strings.HasSuffix(name, "_API_KEY") && !strings.HasSuffix(name, "_BASE_URL") && !strings.HasPrefix(name, "GITHUB_") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(append(cmd.Env, "ABL_HELPER="+Bin(p, "abl-cmd"), "ABL_GATEWAY="+Bin(p, "abl-gateway")), p.Env...)
	return cmd
}

// Run runs abl to its end.
func (p *Project) Run(args ...string) Result {
	p.Helper()
	var out, errs bytes.Buffer
	cmd := p.Cmd(args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	begun := time.Now()
	err := cmd.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		p.Fatal(err)
	}
	return Result{cmd.ProcessState.ExitCode(), out.String(), errs.String(), time.Since(begun)}
}

// Must runs abl and fails the test unless it ends with this code.
func (p *Project) Must(code int, args ...string) Result {
	p.Helper()
	r := p.Run(args...)
	if r.Code != code {
		p.Fatalf("abl %s: exit %d, want %d\nstdout: %s\nstderr: %s", strings.Join(args, " "), r.Code, code, r.Stdout, r.Stderr)
	}
	return r
}

// JSON runs abl, which must pass, and decodes what it printed.
func (p *Project) JSON(into any, args ...string) {
	p.Helper()
	r := p.Must(0, args...)
	if err := json.Unmarshal([]byte(r.Stdout), into); err != nil {
		p.Fatalf("abl %s: %v\n%s", strings.Join(args, " "), err, r.Stdout)
	}
}

// Git runs the person's git in a directory of the project.
func (p *Project) Git(dir string, args ...string) string {
	p.Helper()
	cmd := exec.Command("git", append([]string{"-C", filepath.Join(p.Dir, dir)}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// ID is the project's id, the label of all that is its on the engine; "" before it has one.
func (p *Project) ID() string {
	p.Helper()
	var state struct {
		Project string `json:"project"`
	}
	if text := p.Read(".abl/state.json"); text == "" || json.Unmarshal([]byte(text), &state) != nil {
		return ""
	}
	return state.Project
}

// Left lists what the engine still holds of the project: containers, volumes, networks.
func (p *Project) Left() string {
	p.Helper()
	id := p.ID()
	if id == "" {
		return ""
	}
	var all []string
	for _, kind := range [][]string{{"ps", "-aq"}, {"volume", "ls", "-q"}, {"network", "ls", "-q"}} {
		out, err := exec.Command("docker", append(kind, "--filter", "label=abl.project="+id)...).Output()
		if err != nil {
			p.Fatalf("docker %s: %v", kind[0], err)
		}
		all = append(all, strings.Fields(string(out))...)
	}
	return strings.Join(all, " ")
}
