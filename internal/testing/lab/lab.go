// Package lab runs end-to-end tests with the real abl, as a separate process, on a real engine.
// It builds the programs once, creates projects, and checks that no test leaves anything on the
// engine.
package lab

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"abl"
)

// Off is the variable that switches the tests with an engine off. Its value "remote" says that the
// engine is on another machine (scripts/remote-engine.sh).
const Off = "ABL_TEST_ENGINE"

// Remote reports whether the engine of the tests is on another machine.
func Remote() bool { return os.Getenv(Off) == "remote" }

// Engine declares that a test needs a container engine. Without an engine the test fails, or is
// skipped if Off is set.
func Engine(t testing.TB) {
	t.Helper()
	if os.Getenv(Off) == "off" {
		t.Skipf("%s=off: this test needs a container engine", Off)
	}
	if err := answers(); err != nil {
		t.Fatalf("no container engine responds (start one with scripts/engine.sh, or set %s=off): %v", Off, err)
	}
}

// answers contacts the engine once for all tests of a package.
var answers = sync.OnceValue(func() error {
	out, err := exec.Command("docker", "version").CombinedOutput()
	if err == nil || socketAnswers() {
		return nil
	}
	return fmt.Errorf("%w: %s", err, out)
})

// Long declares that a test is slow for what it checks: `make test` skips it, and `make test-all`
// runs it.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("only in make test-all")
	}
}

// Socket returns the path of a socket of the engine, for proxies in front of it. For an engine on another
// machine, ABL_TEST_SOCKET names one.
func Socket() string {
	path, _ := strings.CutPrefix(os.Getenv("DOCKER_HOST"), "unix://")
	if !filepath.IsAbs(path) {
		path = os.Getenv("ABL_TEST_SOCKET")
	}
	return cmp.Or(path, "/var/run/docker.sock")
}

// NewServer starts a server that the gateways reach. For an engine on another machine, ABL_TEST_HOST is the
// address of this machine.
func NewServer(h http.Handler) *httptest.Server {
	s := httptest.NewUnstartedServer(h)
	if host := os.Getenv("ABL_TEST_HOST"); host != "" {
		l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
		if err != nil {
			panic(err)
		}
		s.Listener.Close()
		s.Listener = l
	}
	s.Start()
	return s
}

// Local declares that a test needs an engine on this machine. It skips the test if Remote is true,
// and under the build tag portable, where no engine counts as local.
func Local(t testing.TB) {
	t.Helper()
	if Portable || Remote() {
		t.Skip("the engine does not count as local")
	}
}

// Egress declares that a test needs a registry on this machine. The engines of scripts/engines.sh
// run in their own network, without access to it.
func Egress(t testing.TB) {
	t.Helper()
	if os.Getenv("ABL_TEST_EGRESS") == "none" {
		t.Skip("the containers of this engine have no egress (scripts/engines.sh)")
	}
}

func socketAnswers() bool {
	_, err := os.Stat(Socket())
	return err == nil
}

var build = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv("ABL_BIN"); dir != "" {
		return dir, nil
	}
	// The packages of a tree share one folder. Their tests run in parallel, and each replaces the
	// programs with equal ones.
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
			cmd.Env = append(cmd.Env, "GOOS=linux") // runs in containers
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

// Bin returns the path of a program built from this tree: abl, abl-cmd or abl-gateway. ABL_BIN
// names a directory with built programs.
func Bin(t testing.TB, name string) string {
	t.Helper()
	dir, err := build()
	if err != nil {
		t.Fatalf("cannot build: %v", err)
	}
	return filepath.Join(dir, name)
}

// Env returns a lookup of this process's environment in which abl finds the programs of Bin.
func Env(t testing.TB) func(string) string {
	t.Helper()
	programs := map[string]string{"ABL_HELPER": Bin(t, "abl-cmd"), "ABL_GATEWAY": Bin(t, "abl-gateway")}
	return func(name string) string { return cmp.Or(programs[name], os.Getenv(name)) }
}

// Project is a project in a temporary directory.
type Project struct {
	testing.TB
	Dir string
	Env []string // in addition to the environment of the test, without ABL_* and keys
}

// Demo creates a copy of the demo project.
func Demo(t testing.TB) *Project { return From(t, abl.Demo()) }

// From creates a project with these files. At the end of the test, the engine must hold nothing
// of it.
func From(t testing.TB, files fs.FS) *Project {
	t.Helper()
	p := &Project{TB: t, Dir: t.TempDir()}
	if err := os.CopyFS(p.Dir, files); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if r := p.Run("clean"); r.Code != 0 {
			t.Errorf("exit code of abl clean: got %d, want 0: %s", r.Code, r.Stderr)
		}
	})
	return p
}

// Write writes a file of the project.
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

// Read returns the content of a file of the project, or "" if it does not exist.
func (p *Project) Read(name string) string {
	data, err := os.ReadFile(filepath.Join(p.Dir, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.Fatal(err)
	}
	return string(data)
}

// Result is the result of a run of abl.
type Result struct {
	Code           int // -1 after a signal
	Stdout, Stderr string
	Took           time.Duration
}

// Exists reports whether the project has a file or folder with this name.
func (p *Project) Exists(name string) bool {
	_, err := os.Lstat(filepath.Join(p.Dir, name))
	return err == nil
}

// Cmd returns an unstarted command that runs abl with these arguments in the project.
func (p *Project) Cmd(args ...string) *exec.Cmd {
	cmd := exec.Command(Bin(p, "abl"), args...)
	cmd.Dir = p.Dir
	sets := func(name string) bool {
		return slices.ContainsFunc(p.Env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
	}
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if sets("DOCKER_HOST") && (name == "DOCKER_TLS_VERIFY" || name == "DOCKER_CERT_PATH") {
			continue // of another address
		}
		if !strings.HasPrefix(name, "ABL_") && !strings.HasPrefix(name, "GITHUB_") &&
			!strings.HasSuffix(name, "_API_KEY") && !strings.HasSuffix(name, "_BASE_URL") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(cmd.Env, "XDG_STATE_HOME="+filepath.Join(filepath.Dir(p.Dir), "state"))
	cmd.Env = append(append(cmd.Env, "ABL_HELPER="+Bin(p, "abl-cmd"), "ABL_GATEWAY="+Bin(p, "abl-gateway")), p.Env...)
	return cmd
}

// Run runs abl and returns its result.
func (p *Project) Run(args ...string) Result {
	p.Helper()
	return p.RunCmd(p.Cmd(args...))
}

// RunCmd runs a command that Cmd returned, and returns its result.
func (p *Project) RunCmd(cmd *exec.Cmd) Result {
	p.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	begun := time.Now()
	err := cmd.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		p.Fatal(err)
	}
	return Result{cmd.ProcessState.ExitCode(), out.String(), errs.String(), time.Since(begun)}
}

// Must runs abl and fails the test unless the exit code is code.
func (p *Project) Must(code int, args ...string) Result {
	p.Helper()
	r := p.Run(args...)
	if r.Code != code {
		p.Fatalf("abl %s: got exit %d, want %d\nstdout: %s\nstderr: %s",
			strings.Join(args, " "), r.Code, code, r.Stdout, r.Stderr)
	}
	return r
}

// JSON runs abl, which must succeed, and decodes its output.
func (p *Project) JSON(into any, args ...string) {
	p.Helper()
	r := p.Must(0, args...)
	if err := json.Unmarshal([]byte(r.Stdout), into); err != nil {
		p.Fatalf("abl %s: %v\n%s", strings.Join(args, " "), err, r.Stdout)
	}
}

// Git runs the machine's git in a directory of the project.
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

// ToolsImage builds the image in which the scripted agent's roles run, and returns its reference.
func (p *Project) ToolsImage() string {
	p.Helper()
	fields := strings.Fields(p.Must(0, "images", "build", "tools").Stdout)
	return fields[len(fields)-1]
}

// ID returns the project's id, which labels its objects on the engine. It returns "" before the
// project has an id.
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

// Left lists the containers, volumes and networks of the project on the engine.
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
