// Package hostile runs agents that attack abl. The Builder, the Verifier and the app of a real
// phase make the attacks of attacks.md. After each phase an oracle checks everything that
// they must not reach.
package hostile

import (
	"context"
	"crypto/rand"
	_ "embed" // for the app and its suite
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"abl/internal/outcome"
	"abl/internal/state"
	"abl/internal/testing/lab"
	"abl/roles/agent"
)

// The parts that the suites share.
var (
	events    = lab.Events
	of        = lab.Of
	wants     = lab.Wants
	lacks     = lab.Lacks
	docker    = lab.Docker
	lastLines = lab.LastLines
	walk      = lab.Walk
	ownerOf   = lab.OwnerOf
	write     = lab.WriteStep
	report    = lab.ReportStep
	raw       = lab.RawStep
	run       = lab.RunStep
)

// slots limits the number of concurrent projects.
var slots = make(chan struct{}, 3)

// scene is a project with secrets, on an engine that is watched.
type scene struct {
	*lab.Project
	canaries canaries
	watcher  *watcher
	engine   string // abl's address of the engine: the watcher
	home     string
	outside  map[string]string // digests of what no role may change, before the run
	runs     []lab.Result
}

// canaries are random words, one for each secret.
type canaries struct{ Env, Key, Src, Tests, Host, Spec, Proc string }

func newCanaries() canaries {
	word := func(of string) string {
		b := make([]byte, 12)
		rand.Read(b) // never fails
		return "canary" + of + hex.EncodeToString(b)
	}
	return canaries{word("Env"), word("Key"), word("Src"), word("Tests"), word("Host"), word("Spec"), word("Proc")}
}

// The smallest project: a service that responds to one request.
const (
	scenarioFile = ".abl/scenario.yaml"

	basic    = "version: 1\nagent: scripted\nagents: {scripted: {scenario: " + scenarioFile + "}}\n"
	settings = basic + "verify: {evidence: off}\n" // a scene without replays is faster, and weaker
	usual    = "limits: {memory: 512m}\nloop: {call_timeout: 300s}\n"
	nodeApp  = "app: {command: node server.mjs, port: 3000, ready: {path: /, timeout: 60s}}\n"
	specText = "# Phase 1: Answer\n\n## Context\n\nA service that answers. %s\n\n## Contracts\n\n```\n" +
		"GET / → 200 with the text ok\n```\n"
)

// The app and its suite.
var (
	//go:embed testdata/apps/server.mjs
	server string
	//go:embed testdata/suites/answers.sh
	suite string
)

// shared is a folder for all tests of this package.
var shared string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if shared, err = os.MkdirTemp("", "abl-hostile"); err == nil {
			err = os.Chmod(shared, 0o755)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(shared)
		return m.Run()
	}())
}

// waits lets another scene run while do, which does almost nothing, runs.
func (s *scene) waits(do func()) {
	<-slots
	defer func() { slots <- struct{}{} }()
	do()
}

// newScene creates a project with these additional settings. It waits for its turn.
func newScene(t *testing.T, more string) *scene {
	t.Helper()
	lab.Engine(t)
	t.Parallel()
	slots <- struct{}{}
	t.Cleanup(func() { <-slots })
	w, socket := watch(t)
	c := newCanaries()
	s := &scene{
		canaries: c,
		watcher:  w,
		engine:   socket,
		home:     t.TempDir(),
		Project: lab.From(t, fstest.MapFS{
			".abl/config.yaml":      {Data: []byte(settings + more)},
			".abl/project.md":       {Data: []byte("A small service.\n")},
			".abl/specs/phase1.md":  {Data: fmt.Appendf(nil, specText, c.Spec)},
			".gitignore":            {Data: []byte(".env\n")},
			".env":                  {Data: []byte("PLAIN_SECRET=" + c.Env + "\nGEMINI_API_KEY=" + c.Key + "\n"), Mode: 0o600},
			"src/lib/secret.mjs":    {Data: []byte("export const secret = '" + c.Src + "';\n")},
			".abl/tests/t1/case.sh": {Data: []byte("#!/bin/sh\n# " + c.Tests + "\n")},
			"prompts/note.md":       {Data: []byte("The owner's own.\n")},
		}),
	}
	s.setOwner(t)
	return s
}

// setOwner creates the user's home next to the project and gives both to a user other than root, so
// that only the boundary stops a role.
func (s *scene) setOwner(t *testing.T) {
	t.Helper()
	for name, text := range map[string]string{"host.txt": s.canaries.Host, ".ssh/id": s.canaries.Host} {
		if err := errors.Join(os.MkdirAll(filepath.Join(s.home, filepath.Dir(name)), 0o755),
			os.WriteFile(filepath.Join(s.home, name), []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(s.Dir, ".env"), 0o600); err != nil {
		t.Fatal(err)
	}
	installAttacker(t, s)
	s.Env = []string{
		"HOME=" + s.home, "DOCKER_HOST=" + s.engine,
		"SERVICE_API_TOKEN=" + s.canaries.Proc,
	}
	giveToGuest(s)
}

// git runs the user's git in a directory of the project.
func (s *scene) git(dir string, args ...string) string {
	s.Helper()
	out, err := s.gitCommand(dir, args...).CombinedOutput()
	if err != nil {
		s.Errorf("git %s in %s: %v: %s", strings.Join(args, " "), dir, err, out)
	}
	return strings.TrimSpace(string(out))
}

// gitCommand returns git as the owner of the project, who may not be the user of the tests.
func (s *scene) gitCommand(dir string, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second) // a FIFO can block git for ever
	s.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "git", append([]string{
		"-c", "safe.directory=*", "-C", filepath.Join(s.Dir, dir),
	}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "HOME="+s.home)
	return cmd
}

// guest owns the projects if the tests run as root. No machine assigns this number by default.
const guest = 47_112

// giveToGuest changes the owner of the project and the home to guest, and makes them accessible.
func giveToGuest(s *scene) {
	s.Helper()
	if os.Geteuid() != 0 {
		return
	}
	lab.GiveTo(s, s.Dir, guest, guest)
	lab.GiveTo(s, s.home, guest, guest)
}

// owner returns the owner of the project.
func owner() string {
	if os.Geteuid() == 0 {
		return fmt.Sprintf("%d:%d", guest, guest)
	}
	return fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid())
}

// script makes the scripted agent play these calls.
func (s *scene) script(calls ...agent.ScriptCall) {
	s.Helper()
	s.Write(scenarioFile, string(lab.Scenario(s, calls...)))
	giveToGuest(s)
	s.outside = outside(s)
}

// newRound changes the spec, so that the phase starts again.
func (s *scene) newRound(n int) {
	s.Helper()
	s.Write(".abl/specs/phase1.md", fmt.Sprintf(specText, s.canaries.Spec)+fmt.Sprintf("\nRound %d.\n", n))
}

// play runs the phase, checks its exit code and then calls the oracle.
func (s *scene) play(code int, args ...string) lab.Result {
	s.Helper()
	r := s.abl(append([]string{"phase", "1", "--json"}, args...)...)
	if r.Code != code {
		s.Errorf("got exit code %d, want %d: %s%s", r.Code, code, r.Stderr, lastLines(r.Stdout, 12))
	}
	for _, e := range of(events(s, r), state.CallEnd) {
		if e.Class != string(outcome.Done) { // shown if the test fails
			s.Logf("call %s ended as %s: %s", e.Call, e.Class, e.Evidence)
		}
	}
	s.oracle(r)
	return r
}

// maxMemory is the limit for abl's peak memory, in bytes.
const maxMemory = 200 << 20

// abl runs abl and checks its peak memory.
func (s *scene) abl(args ...string) lab.Result {
	s.Helper()
	cmd := s.command(args...)
	r := s.RunCmd(cmd)
	// At the fork the value includes this process, so it is an upper bound.
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok && usage.Maxrss<<10 > maxMemory {
		s.Errorf("peak memory of abl: got %d MB, want at most %d MB", usage.Maxrss>>10, maxMemory>>20)
	}
	s.runs = append(s.runs, r)
	if dir := os.Getenv("HOSTILE_KEEP"); dir != "" {
		name := filepath.Join(dir, fmt.Sprintf("%s-%d", strings.ReplaceAll(s.Name(), "/", "-"), len(s.runs)))
		_ = os.WriteFile(name+".out", []byte(r.Stdout), 0o644)
		_ = os.WriteFile(name+".err", []byte(r.Stderr), 0o644)
	}
	return r
}

// command returns abl as the project's owner runs it.
func (s *scene) command(args ...string) *exec.Cmd {
	s.Helper()
	cmd := s.Cmd(args...)
	if os.Geteuid() != 0 {
		return cmd
	}
	dir := s.publicBin()
	cmd.Path, cmd.Args[0] = filepath.Join(dir, "abl"), filepath.Join(dir, "abl")
	cmd.Env = append(cmd.Env, "ABL_HELPER="+filepath.Join(dir, "abl-cmd"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: guest, Gid: guest}}
	return cmd
}

// publicBin returns a folder with abl's programs that every user can read.
func (s *scene) publicBin() string {
	s.Helper()
	copyOnce.Do(func() { lab.CopyBin(s, shared) })
	return shared
}

var copyOnce sync.Once

// recovers runs an honest phase after an attack. It must pass.
func (s *scene) recovers() {
	s.Helper()
	s.script(builds(), verifies())
	s.play(0, "--again")
}

func call(role string, steps ...agent.Step) agent.ScriptCall {
	return agent.ScriptCall{Role: role, Steps: steps}
}

// builds returns a call of the Builder that performs these steps, builds the app and writes its
// report.
func builds(steps ...agent.Step) agent.ScriptCall {
	return call("builder", append(steps, write("server.mjs", server), report())...)
}

// verifies returns a call of the Verifier that performs these steps and writes its report.
func verifies(steps ...agent.Step) agent.ScriptCall {
	steps = append([]agent.Step{write("run.sh", suite, "0755")}, steps...)
	return call("verifier", append(steps, report())...)
}

// texts joins the texts of events.
func texts(all []state.Event) string {
	var b strings.Builder
	for _, e := range all {
		b.WriteString(e.Text + "\n")
	}
	return b.String()
}

// toolsImage returns the image in which the scripted agent's roles run.
func (s *scene) toolsImage() string {
	s.Helper()
	toolsOnce.Do(func() { tools = s.ToolsImage() })
	return tools
}

var (
	toolsOnce sync.Once
	tools     string
)
