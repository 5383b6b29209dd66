package git

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// cloned clones the repository at dir.
func cloned(t *testing.T, dir string, without ...string) *Repo {
	t.Helper()
	o, err := OpenOrigin(dir)
	must(t, err)
	_, commit, err := o.Head()
	must(t, err)
	to := t.TempDir()
	must(t, o.Clone(t.Context(), to, commit, "abl/phase1", without))
	r, err := Open(to, Options{Clone: true, Without: without})
	must(t, err)
	return r
}

// grown creates a repository with two commits and a hook that leaves a file if it runs.
func grown(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	git(t, dir, "init", "-q", "-b", "main")
	write(t, dir, map[string]string{"package.json": "{}", "lib/a.js": "1", ".abl/config.yaml": "version: 1", "secret/key": "k", "lib/twin": "k"})
	must(t, os.Symlink("lib/a.js", filepath.Join(dir, "link")))
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-qm", "one")
	write(t, dir, map[string]string{"lib/a.js": "2", ".abl/config.yaml": "version: 1 # two", "run.sh": "#!/bin/sh\n"})
	must(t, os.Chmod(filepath.Join(dir, "run.sh"), 0o755))
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-qm", "two")
	return dir
}

func TestClone(t *testing.T) {
	dir := grown(t)
	r := cloned(t, dir)
	clean(t, r.Dir())
	sound(t, r.Dir())
	if a, b := git(t, dir, "rev-parse", "main"), git(t, r.Dir(), "rev-parse", "abl/phase1"); a != b {
		t.Errorf("tip of the clone: got %s, want the origin's %s", b, a)
	}
	if got := git(t, r.Dir(), "log", "--format=%s", "--stat", "-p"); !strings.Contains(got, "+2") {
		t.Errorf("history: got %s, want one with the line +2", got)
	}
	write(t, r.Dir(), map[string]string{"new.js": "3"})
	s := snapshot(t, r, "built", "p1-build-1.1")
	if s.Changed != 1 {
		t.Errorf("changed files: got %d, want 1", s.Changed)
	}
	if got, want := git(t, r.Dir(), "rev-parse", "HEAD^"), git(t, dir, "rev-parse", "main"); got != want {
		t.Errorf("parent of the commit: got %s, want the origin's %s", got, want)
	}
	clean(t, r.Dir())
}

// Commits keep the names of omitted paths. The work tree and the objects have no version of their
// content.
func TestCloneLeavesOut(t *testing.T) {
	dir := grown(t)
	r := cloned(t, dir, ".abl", "secret")
	clean(t, r.Dir())
	if _, err := os.Lstat(filepath.Join(r.Dir(), ".abl")); err == nil {
		t.Error(".abl in the work tree: got an entry, want none")
	}
	want := []string{"lib/a.js", "lib/twin", "link", "package.json", "run.sh"}
	if got, err := r.Files(t.Context(), 100); err != nil || !slices.Equal(got, want) {
		t.Errorf("files of the clone: got %q, %v, want %q", got, err, want)
	}
	if got, err := origin(t, dir).Files([]string{".abl", "secret"}, 100); err != nil || !slices.Equal(got, want) {
		t.Errorf("files of a clone that does not exist yet: got %q, %v, want %q", got, err, want)
	}
	if got := git(t, r.Dir(), "log", "-p", "--stat", "--", ".abl"); strings.Contains(got, "version") || !strings.Contains(got, strings.TrimSpace(leftOut)) {
		t.Errorf("history of the omitted path: got %s, want only the text %q", got, leftOut)
	}
	if got := git(t, r.Dir(), "config", "core.sparseCheckout"); got != "true" {
		t.Errorf("core.sparseCheckout: got %q, want true, so that the user's own git merge leaves these paths alone", got)
	}
	for _, version := range []string{"main:.abl/config.yaml", "main~1:.abl/config.yaml"} {
		if out, err := tryGit(r.Dir(), "--no-replace-objects", "cat-file", "-p", git(t, dir, "rev-parse", version)); err == nil {
			t.Errorf("object of %s: got %s, want none in the clone", version, out)
		}
	}
	if got := git(t, r.Dir(), "show", "HEAD:lib/twin"); got != "k" {
		t.Errorf("lib/twin, with the content of an omitted file: got %q, want %q", got, "k")
	}
	write(t, r.Dir(), map[string]string{"new.js": "3", ".abl/config.yaml": "mine", ".abl/more": "x", "secret": "file"})
	s := snapshot(t, r, "built", "p1-build-1.1")
	if got := git(t, r.Dir(), "diff", "--name-only", "HEAD^", "HEAD"); got != "new.js" || s.Changed != 1 {
		t.Errorf("changed paths: got %d, %q, want only new.js", s.Changed, got)
	}
	again, err := Open(r.Dir(), Options{Clone: true, Without: []string{".abl", "secret"}})
	must(t, err)
	write(t, r.Dir(), map[string]string{"new.js": "4"})
	s = snapshot(t, again, "built", "p1-build-2.1")
	if got := git(t, r.Dir(), "diff", "--name-only", "HEAD^", "HEAD"); got != "new.js" || s.Changed != 1 {
		t.Errorf("changed paths: got %d, %q, want only new.js", s.Changed, got)
	}
}

// Commits in the clone keep the omitted paths, even if the agent replaces a parent directory or the
// path is no longer in Without.
func TestCloneKeeps(t *testing.T) {
	for name, c := range map[string]struct {
		without []string // in the end
		files   map[string]string
	}{
		"a file":                  {[]string{"secret/key"}, map[string]string{"secret": "file"}},
		"a link":                  {[]string{"secret/key"}, map[string]string{"secret": "->/etc", "secret-too": "s"}},
		"no longer left out":      {nil, map[string]string{"new.js": "3"}},
		"a submodule's, a file":   {[]string{"secret/key"}, map[string]string{"deps": "file"}},
		"no longer, and made":     {nil, map[string]string{"secret/key": "mine"}},
		"nothing is in its place": {[]string{"secret/key"}, map[string]string{"new.js": "3"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := grown(t)
			git(t, dir, "update-index", "--add", "--cacheinfo", "160000,1111111111111111111111111111111111111111,deps/lib")
			git(t, dir, "commit", "-qm", "submodule")
			r := cloned(t, dir, "secret/key")
			r, err := Open(r.Dir(), Options{Clone: true, Without: c.without})
			must(t, err)
			must(t, os.RemoveAll(filepath.Join(r.Dir(), "deps")))
			write(t, r.Dir(), c.files)
			snapshot(t, r, "built", "p1-build-1.1")
			got := git(t, r.Dir(), "ls-tree", "-r", "--name-only", "HEAD")
			if !strings.Contains(got, "secret/key") || !strings.Contains(got, "deps/lib") {
				t.Errorf("paths of the commit: got %q, want secret/key and deps/lib among them", got)
			}
			if out, err := tryGit(r.Dir(), "fsck", "--strict", "--connectivity-only"); strings.Contains(out, "duplicateEntries") {
				t.Errorf("git fsck: got %v: %s, want no duplicateEntries", err, out)
			}
			if out, _ := tryGit(r.Dir(), "ls-tree", "HEAD", "secret", "deps"); strings.Count(out, "\n") != 1 {
				t.Errorf("entries secret and deps of the tree: got %s, want one of each", out)
			}
		})
	}
}

// A path that exists in the clone cannot be omitted later.
func TestCloneCannotForget(t *testing.T) {
	r := cloned(t, grown(t), "secret")
	if _, err := Open(r.Dir(), Options{Clone: true, Without: []string{"lib", "secret"}}); !errors.Is(err, ErrForeign) {
		t.Errorf("got %v, want that a person decides", err)
	}
}

// The clone has content that is both at an omitted and at another path, also if a later commit adds
// one of the two.
func TestCloneOfTwins(t *testing.T) {
	for name, c := range map[string]struct {
		first  map[string]string
		change func(dir string)
		path   string
	}{
		"two folders":       {map[string]string{"b/k": "twin"}, func(string) {}, "b/k"},
		"a folder is moved": {nil, func(dir string) { git(t, dir, "mv", "a", "b") }, "b/k"},
		"a file is copied":  {nil, func(dir string) { write(t, dir, map[string]string{"k": "twin"}) }, "k"},
		"one more left out": {map[string]string{"k": "new"}, func(dir string) { write(t, dir, map[string]string{"a/l": "new"}) }, "k"},
		"nothing of it yet": {nil, func(dir string) { write(t, dir, map[string]string{"new": "1"}) }, "new"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := grown(t)
			write(t, dir, c.first)
			commitFiles(t, dir, map[string]string{"a/k": "twin"})
			r := cloned(t, dir, "a")
			c.change(dir)
			git(t, dir, "add", "-A")
			git(t, dir, "commit", "--allow-empty", "-qm", "the user's")
			_, err := takeIn(t, r, dir)
			must(t, err)
			clean(t, r.Dir())
			if got, want := git(t, r.Dir(), "show", "HEAD:"+c.path), git(t, dir, "show", "HEAD:"+c.path); got != want {
				t.Errorf("%s in the clone: got %q, want %q as in the repository", c.path, got, want)
			}
		})
	}
}

func TestCloneOf(t *testing.T) {
	for name, c := range map[string]struct {
		make func(dir string)
		want string
	}{
		"hooks": {func(dir string) {
			write(t, dir, map[string]string{".git/hooks/post-checkout": "#!/bin/sh\ntouch ran\n"})
			must(t, os.Chmod(filepath.Join(dir, ".git/hooks/post-checkout"), 0o755))
		}, "does not run its hooks"},
		"filters": {func(dir string) {
			git(t, dir, "config", "filter.evil.smudge", "touch ran")
			write(t, dir, map[string]string{".gitattributes": "* filter=evil\n"})
			git(t, dir, "add", ".gitattributes")
			git(t, dir, "commit", "-qm", "attributes")
		}, "does not run its filters"},
		"includes": {func(dir string) { git(t, dir, "config", "include.path", "/dev/zero") }, "does not read the files that its config includes"},
		"a submodule": {func(dir string) {
			git(t, dir, "update-index", "--add", "--cacheinfo", "160000,1111111111111111111111111111111111111111,deps/lib")
			write(t, dir, map[string]string{".gitmodules": "[submodule \"x\"]\npath = deps/lib\nurl = ext::sh -c touch% ran\n"})
			git(t, dir, "add", ".gitmodules")
			git(t, dir, "commit", "-qm", "submodule")
		}, "submodules are empty directories in the clone (deps/lib)"},
		"large files": {func(dir string) {
			write(t, dir, map[string]string{".gitattributes": "*.bin filter=lfs\n"})
			git(t, dir, "add", ".gitattributes")
			git(t, dir, "commit", "-qm", "lfs")
		}, "Git LFS"},
		"packs": {func(dir string) { git(t, dir, "gc", "-q"); git(t, dir, "pack-refs", "--all") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := grown(t)
			c.make(dir)
			o, err := OpenOrigin(dir)
			must(t, err)
			_, commit, err := o.Head()
			must(t, err)
			remarks, err := o.Remarks(commit, nil)
			if got := strings.Join(remarks, "\n"); err != nil || !strings.Contains(got, c.want) || (c.want == "") != (got == "") {
				t.Errorf("remarks: got %q, %v, want %q", got, err, c.want)
			}
			r := cloned(t, dir)
			clean(t, r.Dir())
			write(t, r.Dir(), map[string]string{"new.js": "3"})
			snapshot(t, r, "built", "p1-build-1.1")
			if got := git(t, r.Dir(), "diff", "--name-only", "HEAD^", "HEAD"); got != "new.js" {
				t.Errorf("changed paths: got %q, want new.js", got)
			}
			for _, at := range []string{dir, r.Dir(), "."} {
				if _, err := os.Lstat(filepath.Join(at, "ran")); err == nil {
					t.Errorf("a program of the repository: got a run of it in %s, want none", at)
				}
			}
		})
	}
}

// An additional work tree has its own HEAD, borrowed objects are copied, and a shallow history
// stays shallow.
func TestCloneOfAWorkTree(t *testing.T) {
	dir := grown(t)
	tree := filepath.Join(t.TempDir(), "tree")
	git(t, dir, "worktree", "add", "-q", "-b", "other", tree)
	write(t, tree, map[string]string{"other.js": "o"})
	git(t, tree, "add", "-A")
	git(t, tree, "commit", "-qm", "other")
	if got := git(t, cloned(t, tree).Dir(), "log", "--format=%s"); got != "other\ntwo\none" {
		t.Errorf("subjects in the clone of a work tree: got %q, want %q", got, "other\ntwo\none")
	}
	shared := filepath.Join(t.TempDir(), "shared")
	git(t, dir, "clone", "-q", "--shared", dir, shared)
	sound(t, cloned(t, shared).Dir())
	shallow := filepath.Join(t.TempDir(), "shallow")
	git(t, dir, "clone", "-q", "--depth=1", "file://"+dir, shallow)
	r := cloned(t, shallow)
	if got := git(t, r.Dir(), "log", "--format=%s"); got != "two" {
		t.Errorf("subjects in the clone of a shallow clone: got %q, want %q", got, "two")
	}
	sound(t, r.Dir())
	write(t, r.Dir(), map[string]string{"new.js": "3"})
	snapshot(t, r, "built", "p1-build-1.1")
	commitFiles(t, shallow, map[string]string{"their.js": "t"})
	if _, err := takeIn(t, r, shallow); err != nil {
		t.Errorf("merge in a shallow clone: got %v, want no error", err)
	}
	commitFiles(t, dir, map[string]string{"more.js": "1"})
	git(t, shallow, "fetch", "-q", "--depth=1", "origin", "main")
	git(t, shallow, "reset", "-q", "--hard", "FETCH_HEAD")
	if _, err := takeIn(t, r, shallow); !errors.Is(err, ErrConflict) {
		t.Errorf("merge of a commit without its history: got %v, want ErrConflict", err)
	}
	sound(t, r.Dir())
}
