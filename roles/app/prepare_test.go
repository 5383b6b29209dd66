package app

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"abl/internal/git"
	"abl/internal/helper"
	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/internal/testing/rolestest"
	"abl/internal/testing/sandboxtest"
	"abl/roles"
)

// kitchen is an app whose source has a lock file, with its app.prepare.
type kitchen struct {
	*stage
	src       string
	ran       int
	container sandbox.ContainerConfig
	does      func(src string) sandbox.Exit
}

func newKitchen(t *testing.T) *kitchen {
	t.Helper()
	app := *rolestest.Web
	app.Prepare = "npm ci"
	k := &kitchen{stage: newStage(t, &app, `{"event":"ready"}`+"\n")}
	k.src = k.Project.Src
	rolestest.Must(t, os.Remove(filepath.Join(k.src, ".git")))
	rolestest.Write(t, filepath.Join(k.src, ".gitignore"), "node_modules/\n")
	rolestest.Write(t, filepath.Join(k.src, "package-lock.json"), "1")
	repo, err := git.Open(k.src, git.Options{})
	rolestest.Must(t, err)
	_, err = repo.Snapshot(t.Context(), git.Message{Subject: "one"})
	rolestest.Must(t, err)
	k.does = func(src string) sandbox.Exit {
		rolestest.Write(t, filepath.Join(src, "node_modules/tiny/index.js"), "x")
		return sandbox.Exit{}
	}
	k.app.Spec.Dir, k.app.Env = helper.Src, []string{"A=1"}
	k.app.UID, k.app.GID = os.Getuid(), os.Getgid()
	if k.app.UID == 0 {
		k.app.UID, k.app.GID = 10001, 10001
	}
	k.app.Prepare, k.app.Commits = &Prepare{Source: repo, Limit: time.Hour}, committed{repo, k.app.UID, k.app.GID}
	k.Engine.Scripts["build"] = func(b sandbox.ContainerConfig) sandbox.Exit {
		k.ran++
		k.container = b
		return k.does(sandboxtest.Host(b, helper.Src))
	}
	return k
}

// committed is the repository of a source.
type committed struct {
	*git.Repo
	uid, gid int
}

func (c committed) Tip() (string, error) {
	head, _, err := c.Head()
	return head.Hash, err
}

func (c committed) ExportTo(ctx context.Context, dir, commit, earlier string) error {
	return c.Repo.ExportTo(ctx, dir, commit, earlier, git.Owner{UID: c.uid, GID: c.gid})
}

func (k *kitchen) prepare(want string) {
	k.Helper()
	failed, err := k.app.Prepared(k.Context(), "p1-build-1.1")
	if err != nil || failed != want {
		k.Errorf("failure of app.prepare: got %q, error %v, want %q", failed, err, want)
	}
	k.WantLeft()
}

// TestPrepareOnce checks that app.prepare runs again only after a change of the lock file, the command
// or the prepared files.
func TestPrepareOnce(t *testing.T) {
	for name, c := range map[string]struct {
		change func(k *kitchen)
		again  bool
	}{
		"nothing":                {func(*kitchen) {}, false},
		"another file":           {func(k *kitchen) { rolestest.Write(t, filepath.Join(k.src, "server.mjs"), "x") }, false},
		"the lock file":          {func(k *kitchen) { rolestest.Write(t, filepath.Join(k.src, "package-lock.json"), "2") }, true},
		"a further lock file":    {func(k *kitchen) { rolestest.Write(t, filepath.Join(k.src, "api/requirements-dev.txt"), "x") }, true},
		"one that git ignores":   {func(k *kitchen) { rolestest.Write(t, filepath.Join(k.src, "node_modules/tiny/yarn.lock"), "x") }, false},
		"the command":            {func(k *kitchen) { k.app.Spec.App.Prepare = "npm ci --omit dev" }, true},
		"the image":              {func(k *kitchen) { k.app.Image = "j" }, true},
		"the environment":        {func(k *kitchen) { k.app.Env = []string{"A=2"} }, true},
		"what it left is gone":   {func(k *kitchen) { rolestest.Must(t, os.RemoveAll(filepath.Join(k.src, "node_modules"))) }, true},
		"more is left":           {func(k *kitchen) { rolestest.Write(t, filepath.Join(k.src, "node_modules/y"), "") }, false},
		"the mark is gone":       {func(k *kitchen) { rolestest.Must(t, os.Remove(filepath.Join(k.app.Project.Logs(), "prepared.json"))) }, true},
		"the mark is a stranger": {func(k *kitchen) { rolestest.Write(t, filepath.Join(k.app.Project.Logs(), "prepared.json"), "x") }, true},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKitchen(t)
			k.prepare("")
			c.change(k)
			k.prepare("")
			if again := k.ran == 2; k.ran > 2 || again != c.again {
				t.Errorf("runs of app.prepare: got %d, want a second one: %v", k.ran, c.again)
			}
		})
	}
}

// TestPrepareMissesAFolderThatIgnoresItself checks that a missing folder that ignores itself, such as
// .venv, is detected like one that the project ignores.
func TestPrepareMissesAFolderThatIgnoresItself(t *testing.T) {
	for name, files := range map[string][]string{"with folders": {".gitignore", "bin/python", "lib/x"}, "flat": {".gitignore", "pyvenv.cfg"}} {
		t.Run(name, func(t *testing.T) {
			k := newKitchen(t)
			k.does = func(src string) sandbox.Exit {
				for _, file := range files {
					rolestest.Write(t, filepath.Join(src, ".venv", file), "*\n")
				}
				return sandbox.Exit{}
			}
			k.prepare("")
			k.prepare("")
			if k.ran != 1 {
				t.Errorf("runs of app.prepare with the folder: got %d, want 1", k.ran)
			}
			rolestest.Must(t, os.RemoveAll(filepath.Join(k.src, ".venv")))
			k.prepare("")
			if k.ran != 2 {
				t.Errorf("runs of app.prepare without the folder: got %d, want 2", k.ran)
			}
		})
	}
}

// TestPrepareBox checks that app.prepare runs without root and network, and sees only the source.
func TestPrepareContainer(t *testing.T) {
	k := newKitchen(t)
	k.prepare("")
	var mounts []string
	for _, m := range k.container.Mounts {
		mounts = append(mounts, m.Target)
	}
	if got := strings.Join(mounts, " "); got != "/workspace/src /workspace/src/.git /abl/in /abl/out/stdout /abl/out/stderr" || !k.container.Mounts[1].ReadOnly {
		t.Errorf("mounts: got %+v, want the source, a read-only .git and the files of the call", k.container.Mounts)
	}
	if k.container.Reach.Join != "" || len(k.container.Reach.Endpoints) > 0 || strings.HasPrefix(k.container.User, "0:") || k.container.Image != "i" || !slices.Contains(k.container.Env, "A=1") {
		t.Errorf("container: got %+v, want no network, no root user, image i and A=1", k.container)
	}
	proof, ok, err := roles.Record{Dir: k.app.Project.Call("prepare")}.Boundary()
	if err != nil || !ok || proof.Made.Err() != nil || proof.Inside.Err() != nil {
		t.Errorf("proof: got %+v, present %t, error %v, want one without a failed check", proof, ok, err)
	}
	if got := k.Kinds(); got != "preparing prepared" {
		t.Errorf("events: got %s, want preparing prepared", got)
	}
}

// TestPrepareByAManifest checks that a manifest counts if there is no lock file, also after a change.
// The error of a failure has the last lines of the output.
func TestPrepareByAManifest(t *testing.T) {
	k := newKitchen(t)
	rolestest.Must(t, os.Rename(filepath.Join(k.src, "package-lock.json"), filepath.Join(k.src, "package.json")))
	for range 2 {
		if failed, err := k.app.Prepared(t.Context(), "p1-build-1.1"); err != nil || failed != "" {
			t.Fatalf("got %q, %v, want a prepared source", failed, err)
		}
	}
	if k.ran != 1 {
		t.Errorf("runs of app.prepare: got %d, want 1", k.ran)
	}
	if got := strings.Join(PreparedFolders(k.app.Project), " "); got != "node_modules" {
		t.Errorf("folders that app.prepare made: got %q, want node_modules", got)
	}
	rolestest.Write(t, filepath.Join(k.src, "package.json"), "2")
	k.does = func(string) sandbox.Exit {
		rolestest.Write(t, roles.Record{Dir: k.app.Project.Call("prepare")}.Stderr(), "npm error\n\n\x1b[31mno such package\n")
		return sandbox.Exit{Code: 1}
	}
	failed, err := k.app.Prepared(t.Context(), "p1-build-2.1")
	if want := "app.prepare ended with exit code 1\nnpm error\n\\u001b[31mno such package"; err != nil || failed != want {
		t.Errorf("got %q, %v, want %q", failed, err, want)
	}
}

// TestPrepareThroughAGate checks that app.prepare with a gateway joins the Builder's network, and that
// refused hosts are reported.
func TestPrepareThroughAGate(t *testing.T) {
	k, gate := newKitchen(t), &gated{}
	k.app.Prepare.Gate, k.app.Prepare.Files = gate, map[string][]byte{"ca.pem": []byte("c")}
	if failed, err := k.app.Prepared(t.Context(), "p1-build-1.1"); err != nil || failed != "" {
		t.Errorf("app.prepare: got failure %q, error %v, want none", failed, err)
	}
	if k.container.Reach.Join != "abl-id-holder-builder" || !slices.Contains(k.container.Env, "HTTPS_PROXY=x") || strings.Join(gate.said, ", ") != "open prepare, close prepare" {
		t.Errorf("container: got %+v, gate calls %q, want the Builder's network, HTTPS_PROXY=x, open and close",
			k.container, gate.said)
	}
	if got := k.Kinds(); got != "preparing prepared note" {
		t.Errorf("events: got %s, want preparing prepared note", got)
	}
	k.WantLeft("abl-id-holder-builder", "abl-id-listener", "abl-id-net-builder")
}

// TestPrepareFails checks that a failure has a message, is not recorded as prepared, and leaves
// tracked files unchanged.
func TestPrepareFails(t *testing.T) {
	const changed = `app.prepare changed %, and abl undid the change: name the files that it creates in .gitignore, and use a command that keeps lock files, such as npm ci`
	file := func(k *kitchen, name string) string { return filepath.Join(k.src, name) }
	for name, c := range map[string]struct {
		does func(k *kitchen) sandbox.Exit
		want string
	}{
		"an exit code": {func(*kitchen) sandbox.Exit { return sandbox.Exit{Code: 3} }, "app.prepare ended with exit code 3"},
		"memory":       {func(*kitchen) sandbox.Exit { return sandbox.Exit{Code: 137, OOMKilled: true} }, "app.prepare used more memory than its container has (limits.memory)"},
		"a lock file that it writes": {func(k *kitchen) sandbox.Exit {
			rolestest.Write(t, file(k, "package-lock.json"), "other")
			return sandbox.Exit{}
		}, strings.Replace(changed, "%", `"package-lock.json"`, 1)},
		"what is not ignored": {func(k *kitchen) sandbox.Exit {
			rolestest.Write(t, file(k, "vendor/a"), "")
			rolestest.Write(t, file(k, "vendor/b"), "")
			return sandbox.Exit{}
		}, strings.Replace(changed, "%", `"vendor/a" and 1 more`, 1)},
		"what git ignores": {func(k *kitchen) sandbox.Exit {
			rolestest.Write(t, file(k, ".gitignore"), "node_modules/\nhidden\n")
			rolestest.Write(t, file(k, "hidden"), "x")
			return sandbox.Exit{}
		}, strings.Replace(changed, "%", `".gitignore"`, 1)},
		"a file that it removes and a link": {func(k *kitchen) sandbox.Exit {
			rolestest.Must(t, os.Remove(file(k, "package-lock.json")))
			rolestest.Must(t, os.Symlink("/etc/passwd", file(k, "package-lock.json")))
			return sandbox.Exit{}
		}, strings.Replace(changed, "%", `"package-lock.json"`, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKitchen(t)
			was, err := k.app.Prepare.Source.Tree(t.Context())
			rolestest.Must(t, err)
			k.does = func(string) sandbox.Exit { return c.does(k) }
			k.prepare(c.want)
			k.prepare(c.want)
			if is, err := k.app.Prepare.Source.(*git.Repo).Differs(t.Context(), ""); k.ran != 2 || err != nil || len(is) > 0 || len(was) != 2 {
				t.Errorf("app.prepare: got %d runs, changes %q of %q, error %v, want 2 runs, no change and 2 files",
					k.ran, is, was, err)
			}
			if is, err := os.Lstat(file(k, "package-lock.json")); err != nil || int(is.Sys().(*syscall.Stat_t).Uid) != k.app.UID && strings.Contains(c.want, "package-lock") {
				t.Errorf("restored file: got %+v, error %v, want one of user %d", is, err, k.app.UID)
			}
		})
	}
}

// TestPrepareBeforeTheFirstCommit checks that uncommitted files are restored, too.
func TestPrepareBeforeTheFirstCommit(t *testing.T) {
	k := newKitchen(t)
	rolestest.Must(t, os.RemoveAll(filepath.Join(k.src, ".git")))
	rolestest.Write(t, filepath.Join(k.src, "lib/a"), "mine")
	rolestest.Must(t, os.Symlink("lib/a", filepath.Join(k.src, "link")))
	repo, err := git.Open(k.src, git.Options{})
	rolestest.Must(t, err)
	k.app.Prepare.Source = repo
	was, err := repo.Tree(t.Context())
	rolestest.Must(t, err)
	k.does = func(src string) sandbox.Exit {
		rolestest.Write(t, filepath.Join(src, "package-lock.json"), "other")
		rolestest.Must(t, os.RemoveAll(filepath.Join(src, "lib")))
		rolestest.Must(t, os.Remove(filepath.Join(src, "link")))
		rolestest.Write(t, filepath.Join(src, "link/new"), "x")
		rolestest.Must(t, os.Chmod(filepath.Join(src, ".gitignore"), 0o755))
		return sandbox.Exit{}
	}
	k.prepare(`app.prepare changed ".gitignore" and 4 more, and abl undid the change: ` +
		`name the files that it creates in .gitignore, and use a command that keeps lock files, such as npm ci`)
	is, err := repo.Tree(t.Context())
	rolestest.Must(t, err)
	if !maps.Equal(was, is) {
		t.Errorf("source: got %q, want %q", is, was)
	}
}

// TestPrepareBeforeTheApp checks that a failed app.prepare counts as an app that did not start, with
// the reason.
func TestPrepareBeforeTheApp(t *testing.T) {
	k := newKitchen(t)
	k.does = func(string) sandbox.Exit { return sandbox.Exit{Code: 1} }
	up, err := k.app.Up(t.Context(), "k", "")
	if err != nil || up.Failed != "app.prepare ended with exit code 1" {
		t.Errorf("app: got %+v, error %v, want failure %q", up, err, "app.prepare ended with exit code 1")
	}
	rolestest.Must(t, k.app.Down(t.Context(), "k"))
	k.WantLeft()
	k.does = func(string) sandbox.Exit { return sandbox.Exit{} }
	if up, err = k.app.Up(t.Context(), "k", ""); err != nil || up.Failed != "" {
		t.Errorf("app: got %+v, error %v, want no failure", up, err)
	}
	if got := k.Kinds(); got != "preparing prepared app_failed preparing prepared app_start app_ready" {
		t.Errorf("events: got %s, want preparing prepared app_failed preparing prepared app_start app_ready", got)
	}
}

// TestPrepareWithoutALockFile checks that the Builder's app.prepare needs a lock file, and that of an
// app does not.
func TestPrepareWithoutALockFile(t *testing.T) {
	k := newKitchen(t)
	rolestest.Must(t, os.Remove(filepath.Join(k.src, "package-lock.json")))
	k.prepare("")
	if k.ran != 0 {
		t.Errorf("runs of app.prepare without a lock file: got %d, want 0", k.ran)
	}
	if _, err := k.app.Up(t.Context(), "k", ""); err != nil || k.ran != 1 {
		t.Errorf("runs of app.prepare for an app: got %d, error %v, want 1", k.ran, err)
	}
}

// TestPrepareLosesTheEngine checks that after any failure nothing stays on the engine or counts as
// prepared.
func TestPrepareLosesTheEngine(t *testing.T) {
	lost := errors.New("engine lost")
	for _, method := range []string{"Create", "Prove", "Start", "Wait", "Logs"} {
		t.Run(method, func(t *testing.T) {
			k := newKitchen(t)
			k.Engine.Fail(method, 1, lost)
			if _, err := k.app.Prepared(t.Context(), "k"); !errors.Is(err, lost) {
				t.Errorf("%s failed: got error %v, want %v", method, err, lost)
			}
			k.WantLeft()
			k.ran = 0
			k.prepare("")
			if k.ran == 0 {
				t.Errorf("runs of app.prepare after %s failed: got 0, want at least 1", method)
			}
		})
	}
	k := newKitchen(t)
	if _, err := k.app.Prepared(rolestest.Cancelled(t), "k"); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got error %v, want %v", err, context.Canceled)
	}
	k.WantLeft()
}

// TestPrepareOutgrows checks that app.prepare is subject to the quota of a call's workspace.
func TestPrepareOutgrows(t *testing.T) {
	k := newKitchen(t)
	end, ended := make(chan struct{}), make(chan struct{})
	defer func() { close(end); <-ended }()
	k.app.Disk = roles.DiskQuota{Bytes: 512 << 10, Every: time.Millisecond}
	k.does = func(src string) sandbox.Exit {
		defer close(ended)
		for i := 0; ; i++ {
			select {
			case <-end:
				return sandbox.Exit{}
			case <-time.After(time.Millisecond):
				rolestest.Write(t, filepath.Join(src, "node_modules", strconv.Itoa(i)), strings.Repeat("x", 64<<10))
			}
		}
	}
	failed, err := k.app.Prepared(t.Context(), "k")
	if err != nil || !strings.HasPrefix(failed, "app.prepare was stopped: its workspace grew by ") {
		t.Errorf("app.prepare: got failure %q, error %v, want one that starts with %q",
			failed, err, "app.prepare was stopped: its workspace grew by ")
	}
}

// TestPrepareOutgrowsAtOnce checks that files before abl's first measurement count, but not files from
// before app.prepare.
func TestPrepareOutgrowsAtOnce(t *testing.T) {
	for size, want := range map[int]string{3 << 19: "app.prepare failed: its workspace grew by 1 MiB", 256 << 10: ""} {
		k := newKitchen(t)
		rolestest.Write(t, filepath.Join(k.src, "node_modules/old"), strings.Repeat("x", 1<<20))
		k.app.Disk = roles.DiskQuota{Bytes: 512 << 10, Every: time.Hour}
		k.does = func(src string) sandbox.Exit {
			rolestest.Write(t, filepath.Join(src, "node_modules/big"), strings.Repeat("x", size))
			return sandbox.Exit{}
		}
		failed, err := k.app.Prepared(t.Context(), "k")
		if err != nil || !strings.HasPrefix(failed, want) || want == "" && failed != "" {
			t.Errorf("%d bytes in one file: got failure %q, error %v, want %q", size, failed, err, want)
		}
	}
}

var _ Source = (*git.Repo)(nil)

// TestDamagedPreparation checks that the user decides, once, if the record of the files before
// app.prepare is damaged.
func TestDamagedPreparation(t *testing.T) {
	p := state.NewProject(t.TempDir(), "src", "tests")
	rolestest.Write(t, filepath.Join(p.Logs(), preparing), "{")
	_, err := Unfinished(t.Context(), p, nil, false)
	if _, damaged := errors.AsType[*roles.Damaged](err); !damaged {
		t.Errorf("damaged record: got error %v, want a *Damaged", err)
	}
	for range 2 {
		if differ, err := Unfinished(t.Context(), p, nil, true); err != nil || differ != nil {
			t.Errorf("damaged record with --take-mine: got %v, error %v, want none", differ, err)
		}
	}
	if data, err := os.ReadFile(filepath.Join(p.Logs(), preparing+".damaged")); err != nil || string(data) != "{" {
		t.Errorf("backup of the damaged record: got %q, error %v, want %q", data, err, "{")
	}
}
