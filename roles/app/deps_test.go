package app

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"abl/internal/git"
	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/internal/testing/rolestest"

	"github.com/google/go-cmp/cmp"
)

// commit commits the workspace.
func (k *kitchen) commit() {
	k.Helper()
	_, err := k.app.Commits.(committed).Snapshot(k.Context(), git.Message{Subject: "next"})
	rolestest.Must(k.T, err)
}

// source returns the files that an app would see, by their path: the text of each.
func (k *kitchen) source() map[string]string {
	k.Helper()
	dirs, failed, _, err := k.app.source(k.Context(), "k", "")
	if err != nil || failed != "" {
		k.Fatalf("got %q, %v, want no failure", failed, err)
	}
	all := map[string]string{}
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			name, _ := filepath.Rel(dir, path)
			if _, hidden := all[name]; err != nil || hidden || e.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			all[name] = string(data)
			return err
		})
		rolestest.Must(k.T, err)
	}
	return all
}

// An app starts from its commit and the dependencies of that commit's lock file. It does not see
// other files of the workspace, ignored or not.
func TestAppSourceIsTheCommit(t *testing.T) {
	k := newKitchen(t)
	rolestest.Write(t, filepath.Join(k.src, "node_modules/tiny/index.js"), "changed by the Builder")
	rolestest.Write(t, filepath.Join(k.src, "node_modules/left.js"), "left by the Builder")
	rolestest.Write(t, filepath.Join(k.src, "new.txt"), "not committed")
	want := map[string]string{".gitignore": "node_modules/\n", "package-lock.json": "1", "node_modules/tiny/index.js": "x"}
	if diff := cmp.Diff(want, k.source()); diff != "" {
		t.Errorf("the app's source (-want +got):\n%s", diff)
	}
}

// app.prepare runs again for another lock file, command, image or environment, and for another manifest
// without its lock file. Without any of these files it runs for each commit.
func TestDependenciesAreCached(t *testing.T) {
	for name, c := range map[string]struct {
		change func(k *kitchen)
		want   int
	}{
		"nothing":                   {func(*kitchen) {}, 1},
		"another-file":              {func(k *kitchen) { rolestest.Write(t, filepath.Join(k.src, "server.mjs"), "x"); k.commit() }, 1},
		"lock-file":                 {func(k *kitchen) { rolestest.Write(t, filepath.Join(k.src, "package-lock.json"), "2"); k.commit() }, 2},
		"uncommitted":               {func(k *kitchen) { rolestest.Write(t, filepath.Join(k.src, "package-lock.json"), "2") }, 1},
		"command":                   {func(k *kitchen) { k.app.Spec.App.Prepare = "npm ci --omit dev" }, 2},
		"image":                     {func(k *kitchen) { k.app.Image = "j" }, 2},
		"environment":               {func(k *kitchen) { k.app.Env = []string{"A=2"} }, 2},
		"machine-started":           {func(k *kitchen) { otherBoot(t, k.app.Project) }, 2},
		"manifest-with-a-lock-file": {func(k *kitchen) { rolestest.Write(t, filepath.Join(k.src, "package.json"), "{}"); k.commit() }, 1},
		"manifest": {func(k *kitchen) {
			rolestest.Must(t, os.Rename(filepath.Join(k.src, "package-lock.json"), filepath.Join(k.src, "package.json")))
			k.commit()
			k.source()
			rolestest.Write(t, filepath.Join(k.src, "server.mjs"), "x")
			k.commit()
			k.source()
			rolestest.Write(t, filepath.Join(k.src, "package.json"), "2")
			k.commit()
		}, 3},
		"no-lock-file": {func(k *kitchen) {
			rolestest.Must(t, os.Remove(filepath.Join(k.src, "package-lock.json")))
			k.commit()
			k.source()
			rolestest.Write(t, filepath.Join(k.src, "server.mjs"), "x")
			k.commit()
		}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKitchen(t)
			k.source()
			c.change(k)
			if k.source(); k.ran != c.want {
				t.Errorf("runs of app.prepare: got %d, want %d", k.ran, c.want)
			}
		})
	}
}

// otherBoot makes a project's cache look as if the machine had been started since.
func otherBoot(t *testing.T, p state.Project) {
	t.Helper()
	rolestest.Write(t, p.Cache("boot"), "another boot")
	caching.Lock()
	delete(opened, p.Cache())
	caching.Unlock()
}

// The cache keeps the directories that were used last, and no unfinished ones.
func TestCacheIsPruned(t *testing.T) {
	p := state.NewProject(t.TempDir(), "src", "tests")
	c := cache{p}
	add := func(name string) {
		t.Helper()
		_, err := c.ensure("trees", name, func(string) error { return nil })
		rolestest.Must(t, err)
	}
	add("first")
	rolestest.Must(t, os.Mkdir(p.Cache("trees", unfinished+"x"), 0o755))
	for _, name := range strings.Fields("a b first c first e") {
		add(name)
	}
	entries, err := os.ReadDir(p.Cache("trees"))
	rolestest.Must(t, err)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if diff := cmp.Diff(strings.Fields("e first"), got); diff != "" {
		t.Errorf("the cache (-want +got):\n%s", diff)
	}
}

// A command that changes, replaces or removes a committed file fails, and its result is not cached.
func TestDependenciesDoNotChangeTheCommit(t *testing.T) {
	file := func(dir string) string { return filepath.Join(dir, "lib/util.js") }
	for name, does := range map[string]func(dir string){
		"changed": func(dir string) { rolestest.Write(t, file(dir), "other") },
		"removed": func(dir string) { rolestest.Must(t, os.Remove(file(dir))) },
		"a-link": func(dir string) {
			rolestest.Must(t, os.Remove(file(dir)))
			rolestest.Must(t, os.Symlink("/etc/passwd", file(dir)))
		},
		"folder-is-a-link": func(dir string) {
			rolestest.Must(t, os.RemoveAll(filepath.Dir(file(dir))))
			rolestest.Must(t, os.Symlink(outside(t), filepath.Dir(file(dir))))
		},
		"closed-folder": func(dir string) {
			rolestest.Write(t, file(dir), "other")
			rolestest.Must(t, os.Chmod(filepath.Dir(file(dir)), 0))
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKitchen(t)
			rolestest.Write(t, file(k.src), "util")
			k.commit()
			k.does = func(dir string) sandbox.Exit { does(dir); return sandbox.Exit{} }
			for range 2 {
				_, failed, _, err := k.app.source(t.Context(), "k", "")
				if err != nil || !strings.HasPrefix(failed, `app.prepare changed "lib`) {
					t.Errorf("got %q, %v, want that it changed a file of lib", failed, err)
				}
			}
			if entries, err := os.ReadDir(k.app.Project.Cache("deps")); k.ran != 2 || err != nil || len(entries) > 0 {
				t.Errorf("runs and cached directories: got %d, %v, error %v, want 2 and none", k.ran, entries, err)
			}
		})
	}
}

// outside returns a folder outside of the project with a file of the same name.
func outside(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	rolestest.Write(t, filepath.Join(dir, "util.js"), "outside")
	t.Cleanup(func() {
		if got, err := os.ReadFile(filepath.Join(dir, "util.js")); err != nil || string(got) != "outside" {
			t.Errorf("file outside: got %q, error %v, want %q", got, err, "outside")
		}
	})
	return dir
}

// Setuid programs, devices and a .git folder are removed from the dependencies.
func TestDependenciesAreDisarmed(t *testing.T) {
	k := newKitchen(t)
	k.does = func(dir string) sandbox.Exit {
		rolestest.Write(t, filepath.Join(dir, "node_modules/tool"), "x")
		rolestest.Must(t, os.Chmod(filepath.Join(dir, "node_modules/tool"), 0o755|fs.ModeSetuid))
		rolestest.Must(t, syscall.Mkfifo(filepath.Join(dir, "node_modules/pipe"), 0o644))
		rolestest.Write(t, filepath.Join(dir, ".git/config"), "x")
		return sandbox.Exit{}
	}
	dirs, failed, _, err := k.app.source(t.Context(), "k", "")
	if err != nil || failed != "" || len(dirs) != 2 {
		t.Fatalf("got %v, %q, %v, want two directories", dirs, failed, err)
	}
	tool, err := os.Stat(filepath.Join(dirs[1], "node_modules/tool"))
	if err != nil || tool.Mode() != 0o755 {
		t.Errorf("tool: got %v, error %v, want mode 0755", tool, err)
	}
	for _, name := range []string{"node_modules/pipe", ".git"} {
		if _, err := os.Lstat(filepath.Join(dirs[1], name)); err == nil {
			t.Errorf("%s in the dependencies: got it, want it removed", name)
		}
	}
}

// A start that is cancelled while app.prepare runs keeps nothing.
func TestDependenciesCancelled(t *testing.T) {
	k := newKitchen(t)
	ctx, cancel := context.WithCancel(t.Context())
	k.does = func(string) sandbox.Exit { cancel(); <-t.Context().Done(); return sandbox.Exit{} }
	if _, _, _, err := k.app.source(ctx, "k", ""); err == nil {
		t.Error("got no error, want that it was cancelled")
	}
	if entries, _ := os.ReadDir(k.app.Project.Cache("deps")); len(entries) > 0 {
		t.Errorf("cached directories: got %v, want none", entries)
	}
}

// app.build runs once for each commit, on the commit and its dependencies. Its files lie under those of
// the commit and over the dependencies.
func TestBuildIsCached(t *testing.T) {
	k := newKitchen(t)
	k.app.Spec.App.Build, k.app.Build = "make", &Prepare{Setting: "app.build", Limit: time.Hour}
	prepare, builds := k.does, 0
	k.does = func(dir string) sandbox.Exit {
		if k.container.Name != k.app.Name("build") {
			return prepare(dir)
		}
		builds++
		tiny, err := os.ReadFile(filepath.Join(dir, "node_modules/tiny/index.js"))
		rolestest.Must(t, err)
		rolestest.Write(t, filepath.Join(dir, "dist/app.js"), "of "+string(tiny))
		rolestest.Write(t, filepath.Join(dir, "node_modules/tiny/cache"), "y")
		rolestest.Write(t, filepath.Join(dir, "node_modules/tiny/index.js"), "compiled")
		return sandbox.Exit{}
	}
	want := map[string]string{
		".gitignore": "node_modules/\n", "package-lock.json": "1", "dist/app.js": "of x",
		"node_modules/tiny/cache": "y", "node_modules/tiny/index.js": "compiled",
	}
	for range 2 {
		if diff := cmp.Diff(want, k.source()); diff != "" {
			t.Errorf("the app's source (-want +got):\n%s", diff)
		}
	}
	if k.ran != 2 || builds != 1 {
		t.Errorf("runs: got %d commands, %d of them app.build, want 2 and 1", k.ran, builds)
	}
	rolestest.Write(t, filepath.Join(k.src, "server.mjs"), "x")
	k.commit()
	k.source()
	if k.ran != 3 || builds != 2 {
		t.Errorf("runs after a commit: got %d commands, %d of them app.build, want 3 and 2", k.ran, builds)
	}
}

// A build that fails, or that changes a file of the commit, is a failure of the app, and its directory is
// not kept.
func TestBuildFails(t *testing.T) {
	for name, c := range map[string]struct {
		does func(dir string) sandbox.Exit
		want string
	}{
		"exit code": {func(string) sandbox.Exit { return sandbox.Exit{Code: 3} }, "app.build ended with exit code 3"},
		"changes the commit": {func(dir string) sandbox.Exit {
			rolestest.Must(t, os.WriteFile(filepath.Join(dir, "package-lock.json"), []byte("2"), 0o644))
			return sandbox.Exit{}
		}, `app.build changed "package-lock.json"`},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKitchen(t)
			k.app.Spec.App.Build, k.app.Build, k.app.Prepare = "make", &Prepare{Setting: "app.build", Limit: time.Hour}, nil
			k.does = c.does
			_, failed, _, err := k.app.source(t.Context(), "k", "")
			if err != nil || !strings.HasPrefix(failed, c.want) {
				t.Errorf("got %q, %v, want %q", failed, err, c.want)
			}
			if entries, _ := os.ReadDir(k.app.Project.Cache("builds")); len(entries) > 0 {
				t.Errorf("cached directories: got %v, want none", entries)
			}
		})
	}
}
