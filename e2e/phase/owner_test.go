package phase

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"abl/internal/state"
	"abl/internal/testing/lab"
)

// guest is the user of a project. No machine assigns this number by default.
const guest = 47_111

// asRoot reports whether tests can create files of another user.
func asRoot() bool { return os.Geteuid() == 0 }

// owners returns the owners of all files below dir, with the first path of each.
func owners(t *testing.T, dir string) string {
	t.Helper()
	seen := map[string]bool{}
	var all []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if strings.HasSuffix(path, "/.abl/cache") { // abl's exports belong to the roles' user
			return filepath.SkipDir
		}
		info, err := d.Info()
		if err == nil && !seen[ownerOf(info)] {
			seen[ownerOf(info)] = true
			all = append(all, ownerOf(info)+" at "+strings.TrimPrefix(path, dir))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, ", ")
}

// as makes a command run as a user who may use the engine, like the members of its group.
func as(t *testing.T, cmd *exec.Cmd, uid int) {
	t.Helper()
	info, err := os.Stat(lab.Socket())
	if err != nil {
		t.Fatal(err)
	}
	_, group, _ := strings.Cut(ownerOf(info), ":")
	gid, err := strconv.Atoi(group)
	if err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{
		Uid:    uint32(uid),
		Gid:    uint32(uid),
		Groups: []uint32{uint32(gid)},
	}}
}

// publicBin makes the programs readable for another user.
func publicBin(t *testing.T, cmd *exec.Cmd, p *lab.Project) {
	t.Helper()
	dir := filepath.Join(filepath.Dir(p.Dir), "bin")
	lab.CopyBin(t, dir)
	cmd.Path, cmd.Args[0] = filepath.Join(dir, "abl"), filepath.Join(dir, "abl")
	cmd.Env = append(cmd.Env, "ABL_HELPER="+filepath.Join(dir, "abl-cmd"),
		"ABL_GATEWAY="+filepath.Join(dir, "abl-gateway"), "HOME="+filepath.Join(filepath.Dir(p.Dir), "home"))
}

// A user without root: roles run as that user, and every file belongs to that user.
func TestUserWithoutRoot(t *testing.T) {
	p := newProject(t, nodeApp, builds(write("server.mjs", server), run("id -u"), run("id -g")),
		verifies(run("id -u"), run("ls -ldn /workspace/tests/.git")))
	if !asRoot() {
		p.Must(0, "phase", "1")
		wants(t, "the Builder's user", printed(p, "p1-build-1.1"), fmt.Sprint(os.Getuid()))
		return
	}
	lab.GiveTo(t, p.Dir, guest, guest)
	cmd := p.Cmd("phase", "1")
	publicBin(t, cmd, p)
	as(t, cmd, guest)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("abl as another user: got error %v, want none: %s", err, out)
	}
	wants(t, "the Builder's user", printed(p, "p1-build-1.1"), "47111\n47111\n")
	if got := owners(t, p.Dir); got != "47111:47111 at " {
		t.Errorf("the owner of the files: got %s, want 47111:47111", got)
	}
	checkNothingLeft(p)
}

// root in a user's project: roles run as that user, who owns all files afterwards.
func TestRootInProjectOfAnotherUser(t *testing.T) {
	lab.Long(t)
	p := newProject(t, nodeApp, builds(write("server.mjs", server), write("data/x", "x"), run("id -u"),
		run("id -g")), verifies(run("id -u")))
	if !asRoot() {
		t.Log("only root can run this")
		return
	}
	lab.GiveTo(t, p.Dir, guest, guest)
	p.Must(0, "phase", "1")
	wants(t, "the Builder's user", printed(p, "p1-build-1.1"), "47111\n47111\n")
	for _, dir := range []string{"src", ".abl/tests", ""} {
		if got := owners(t, filepath.Join(p.Dir, dir)); got != "47111:47111 at " {
			t.Errorf("the owner of the files in %q: got %s, want 47111:47111", dir, got)
		}
	}
	checkNothingLeft(p)
}

// root in root's project: roles run as a separate user, and all files belong to root again
// afterwards, or after a kill at the next command.
func TestRootInItsOwnProject(t *testing.T) {
	lab.Long(t)
	waits := must(0, "until test -e /workspace/src/go; do sleep 0.02; done")
	p := newProject(t, nodeApp, builds(write("server.mjs", server), write("data/x", "x"), run("id -u"), run("id -g"),
		run("ls -ldn .git . data"), waits), verifies())
	if !asRoot() {
		t.Log("only root can run this")
		return
	}
	p.Write("src/README", "root's\n")
	watch(p, func(e state.Event, abl *os.Process) {
		if e.Kind == state.Action && strings.HasPrefix(e.Text, "run until test") {
			if got := owners(t, filepath.Join(p.Dir, "src")); !strings.Contains(got, "10001:10001") {
				t.Errorf("the owner of the files while the Builder runs: got %s, want 10001:10001", got)
			}
			_ = abl.Kill()
		}
	}, "phase", "1")
	p.Write("src/go", "")
	p.Must(0, "phase", "1")
	wants(t, "the Builder", printed(p, "p1-build-1.1"), "10001\n10001\n", " 0 10001 ", " .git\n")
	for _, dir := range []string{"src", ".abl/tests", ""} {
		if got := owners(t, filepath.Join(p.Dir, dir)); got != "0:0 at " {
			t.Errorf("the owner of the files in %q: got %s, want 0:0", dir, got)
		}
	}
	if got, want := p.Git("src", "log", "--reverse",
		"--format=%s"), "phase1/person/step-1\nphase1/build/step-1"; got != want {
		t.Errorf("got commits %q, want %q", got, want)
	}
	checkNothingLeft(p)
}

// After a kill any next command restores the owner of root's files, not only another run.
func TestKilledRunRestoresOwners(t *testing.T) {
	p := newProject(t, nodeApp, builds(write("server.mjs", server), must(0, "sleep 30")), verifies())
	watch(p, func(e state.Event, abl *os.Process) {
		if e.Kind == state.Action && strings.HasPrefix(e.Text, "run sleep") {
			_ = abl.Kill()
		}
	}, "phase", "1")
	if p.Left() == "" {
		t.Error("left on the engine by a killed abl: got nothing, want its containers")
	}
	p.Must(0, "clean")
	checkNothingLeft(p)
	if want := fmt.Sprintf("%d:%d at ", os.Getuid(), os.Getgid()); owners(t, p.Dir) != want {
		t.Errorf("the owner of the files: got %s, want %s", owners(t, p.Dir), want)
	}
}

// A role may remove all permissions from the files that it shares with abl. abl, without root,
// can still read them, and so can the user afterwards.
func TestRolesRemovePermissions(t *testing.T) {
	lab.Long(t)
	p := newProject(t, evidence,
		call("builder", 0, hasApp(t, "shuts-its-output.mjs"), write("deep/er/file", "x"), report(),
			run("chmod 4777 /abl/out/stderr"), run("chmod 000 /abl/out/stdout"),
			run("chmod 000 server.mjs deep/er deep builder_reports"), run("chmod 000 .")),
		call("verifier", 0, hasSuite(t, "shuts-its-output.sh"), refute("seen 500"), report(),
			run("chmod 000 /abl/out/*"), run("chmod 111 run.sh"), run("chmod 000 failed_specs.md verifier_reports .")))
	p.Env = append(p.Env, "ABL_LOOP_MAX_VERIFIER_ITERATIONS=1")
	abl := func(code int, args ...string) string {
		cmd := p.Cmd(args...)
		if asRoot() {
			publicBin(t, cmd, p)
			as(t, cmd, guest)
		}
		out, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != code {
			t.Errorf("abl %s as a user: got exit %d, want %d: %s", args, cmd.ProcessState.ExitCode(), code, out)
		}
		return string(out)
	}
	if asRoot() {
		lab.GiveTo(t, p.Dir, guest, guest)
	}
	wants(t, "the run", abl(3, "phase", "1"), "replay: 0 of 1 tests", "seen 500", `"server.mjs" (not accessible to its owner, made accessible)`)
	for _, who := range []string{"builder", "verifier", "app"} {
		abl(0, "logs", who)
	}
	for _, name := range []string{
		"p1-build-1.1/stdout", "p1-build-1.1/stderr", "p1-verify-1.1/stdout",
		"p1-verify-1.1/app/app.log", "p1-verify-1.1/app/events",
	} {
		if info, err := os.Stat(filepath.Join(p.Dir, ".abl/logs/calls", name)); err != nil || info.Mode() != 0o644 {
			t.Errorf("%s: got %v, %v, want the mode 0644", name, info, err)
		}
	}
	checkNothingLeft(p)
}
