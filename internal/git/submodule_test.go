package git

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"abl/internal/state"
)

// nested creates a repository with a submodule at deps/lib, which has one at in/ner.
func nested(t *testing.T) string {
	t.Helper()
	repo := func(files map[string]string) string {
		dir := t.TempDir()
		git(t, dir, "init", "-q", "-b", "main")
		write(t, dir, files)
		git(t, dir, "add", "-A")
		git(t, dir, "commit", "-qm", "one")
		return dir
	}
	inner := repo(map[string]string{"deep": "d"})
	lib := repo(map[string]string{"a.c": "1", "b.c": "2", "sub/c.c": "3", "secret": "s"})
	git(t, lib, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "--name", "odd", inner, "in/ner")
	git(t, lib, "commit", "-qm", "inner")
	dir := grown(t)
	git(t, dir, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "--name", "the lib", lib, "deps/lib")
	git(t, dir, "commit", "-qm", "submodule")
	git(t, dir, "-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init", "--recursive")
	return dir
}

// filesBelow returns the files below a directory with their content.
func filesBelow(t *testing.T, dir string) string {
	t.Helper()
	var all []string
	must(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			data, rerr := os.ReadFile(path)
			must(t, rerr)
			name, _ := filepath.Rel(dir, path)
			if name != ".gitmodules" {
				all = append(all, name+"="+string(data))
			}
		}
		return err
	}))
	return strings.Join(all, " ")
}

const wholeLib = "a.c=1 b.c=2 in/ner/deep=d secret=s sub/c.c=3"

// A clone and an export have the committed content of submodules. Changes in one are not committed,
// but listed.
func TestSubmodules(t *testing.T) {
	dir := nested(t)
	r := cloned(t, dir, ".abl")
	lib := filepath.Join(r.Dir(), "deps/lib")
	if got := filesBelow(t, lib); got != wholeLib {
		t.Errorf("files of the submodule: got %q, want %q", got, wholeLib)
	}
	clean(t, r.Dir())
	if differ, err := r.Differs(t.Context(), ""); err != nil || len(differ) > 0 {
		t.Errorf("Differs of the clone: got %q, %v, want no path", differ, err)
	}
	remarks, err := origin(t, dir).Remarks(git(t, dir, "rev-parse", "HEAD"), nil)
	if got := strings.Join(remarks, "\n"); err != nil || strings.Contains(got, "submodule") {
		t.Errorf("remarks: got %q, %v, want none about submodules", got, err)
	}
	var found state.Found
	built := func(call string) Snap {
		s, err := r.Snapshot(t.Context(), Message{Subject: "built", Call: call, Keep: func(f state.Found) error { found = f; return nil }})
		must(t, err)
		return s
	}
	if s := built("p1-build-1.1"); s.Changed != 0 || len(found.Absent) > 0 {
		t.Errorf("nothing was changed: got %d changes and absent paths %v, want none", s.Changed, found.Absent)
	}
	write(t, r.Dir(), map[string]string{"new.js": "3", "deps/lib/a.c": "changed", "deps/lib/new.c": "n", "deps/lib/in/ner/deep": "changed"})
	must(t, os.Remove(filepath.Join(lib, "b.c")))
	s := built("p1-build-2.1")
	if got := git(t, r.Dir(), "diff", "--name-only", "HEAD^", "HEAD"); got != "new.js" || s.Changed != 1 {
		t.Errorf("changed paths: got %d, %q, want only new.js", s.Changed, got)
	}
	var named []string
	for _, thing := range found.Absent {
		named = append(named, thing.Path)
		if !strings.Contains(thing.What, "inside a submodule") {
			t.Errorf("%s: got %q, want that it is inside a submodule", thing.Path, thing.What)
		}
	}
	if got := strings.Join(named, " "); got != "deps/lib/a.c deps/lib/b.c deps/lib/in/ner/deep deps/lib/new.c" {
		t.Errorf("absent paths: got %q, want the four changed files in deps/lib", got)
	}
	var out bytes.Buffer
	must(t, r.Export(t.Context(), &out, s.Commit.Hash, "src", Owner{os.Geteuid(), os.Getegid()}))
	var exported []string
	for in := tar.NewReader(&out); ; {
		h, err := in.Next()
		if err == io.EOF {
			break
		}
		must(t, err)
		if name, is := strings.CutPrefix(h.Name, "src/deps/lib/"); is && h.Typeflag == tar.TypeReg && name != ".gitmodules" {
			data, err := io.ReadAll(in)
			must(t, err)
			exported = append(exported, name+"="+string(data))
		}
	}
	if got := strings.Join(exported, " "); got != wholeLib {
		t.Errorf("submodule in the exported archive: got %q, want %q", got, wholeLib)
	}
	to := t.TempDir()
	must(t, r.ExportTo(t.Context(), to, s.Commit.Hash, "", Owner{os.Geteuid(), os.Getegid()}))
	if got := filesBelow(t, filepath.Join(to, "deps/lib")); got != wholeLib {
		t.Errorf("submodule in the exported directory: got %q, want %q", got, wholeLib)
	}
	must(t, origin(t, dir).Receive(t.Context(), r, "refs/heads/abl/phase1", s.Commit.Hash))
	sound(t, dir)
}

// A clone follows a submodule that the user updates, and still omits its paths.
func TestSubmoduleMoves(t *testing.T) {
	dir := nested(t)
	r := cloned(t, dir)
	write(t, filepath.Join(dir, "deps/lib"), map[string]string{"a.c": "newer", "b.c": "2"})
	must(t, os.Remove(filepath.Join(dir, "deps/lib/sub/c.c")))
	git(t, filepath.Join(dir, "deps/lib"), "commit", "-qam", "newer")
	git(t, dir, "commit", "-qam", "update the lib")
	_, err := takeIn(t, r, dir)
	must(t, err)
	if got := filesBelow(t, filepath.Join(r.Dir(), "deps/lib")); got != "a.c=newer b.c=2 in/ner/deep=d secret=s" {
		t.Errorf("files of the submodule: got %q, want %q", got, "a.c=newer b.c=2 in/ner/deep=d secret=s")
	}
	clean(t, r.Dir())
}

// A submodule that is not checked out, whose repository or directory is elsewhere, or that contains
// an omitted path, is an empty directory and is listed.
func TestSubmodulesStayEmpty(t *testing.T) {
	for name, c := range map[string]struct {
		without []string
		change  func(t *testing.T, dir string)
	}{
		"not checked out": {nil, func(t *testing.T, dir string) {
			must(t, os.RemoveAll(filepath.Join(dir, "deps/lib")))
			must(t, os.Mkdir(filepath.Join(dir, "deps/lib"), 0o755))
		}},
		"another repository": {nil, func(t *testing.T, dir string) {
			other := filepath.Join(t.TempDir(), "other")
			must(t, os.CopyFS(other, os.DirFS(filepath.Join(dir, ".git/modules/the lib"))))
			git(t, dir, "config", "--file", filepath.Join(other, "config"), "--unset", "core.worktree")
			write(t, dir, map[string]string{"deps/lib/.git": "gitdir: " + other + "\n"})
		}},
		"a link above it": {nil, func(t *testing.T, dir string) {
			must(t, os.Rename(filepath.Join(dir, "deps"), filepath.Join(dir, "elsewhere")))
			must(t, os.Symlink("elsewhere", filepath.Join(dir, "deps")))
		}},
		"a commit that is not there": {nil, func(t *testing.T, dir string) {
			git(t, dir, "update-index", "--cacheinfo", "160000,"+strings.Repeat("1", 40)+",deps/lib")
			git(t, dir, "commit", "-qm", "an unknown commit")
		}},
		"a path is left out": {[]string{"deps/lib/secret"}, func(*testing.T, string) {}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := nested(t)
			c.change(t, dir)
			r := cloned(t, dir, c.without...)
			if got := filesBelow(t, filepath.Join(r.Dir(), "deps/lib")); got != "" {
				t.Errorf("files of the submodule: got %q, want none", got)
			}
			commit, to := git(t, r.Dir(), "rev-parse", "HEAD"), t.TempDir()
			must(t, r.ExportTo(t.Context(), to, commit, "", Owner{os.Geteuid(), os.Getegid()}))
			if files, err := os.ReadDir(filepath.Join(to, "deps/lib")); err != nil || len(files) > 0 {
				t.Errorf("the exported submodule: got %v, %v, want an empty directory", files, err)
			}
			remarks, err := origin(t, dir).Remarks(git(t, dir, "rev-parse", "HEAD"), c.without)
			if got := strings.Join(remarks, "\n"); err != nil || !strings.Contains(got, "its submodules are empty directories in the clone (deps/lib)") {
				t.Errorf("remarks: got %q, %v, want deps/lib", got, err)
			}
		})
	}
}

// A submodule whose path leads out of the work tree is not read.
func TestSubmoduleOutside(t *testing.T) {
	outer := grown(t)
	dir := filepath.Join(outer, "inner")
	must(t, os.Mkdir(dir, 0o755))
	git(t, dir, "init", "-q", "-b", "main")
	mktree := exec.Command("sh", "-c", `printf '160000 commit %s\t..\n' "$2" | git -C "$1" mktree --missing`, "sh", dir,
		git(t, outer, "rev-parse", "HEAD"))
	tree, err := mktree.Output()
	must(t, err)
	commit := git(t, dir, "commit-tree", "-m", "odd", strings.TrimSpace(string(tree)))
	have, lack, err := origin(t, dir).modules(commit, nil)
	if err != nil || len(have) > 0 || len(lack) != 1 {
		t.Errorf("got %d submodules to copy, %q and %v, want only .. among the others", len(have), lack, err)
	}
}
