package git

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// lfs creates a repository with files in Git LFS: data/old.bin with content in .git/lfs, and
// data/lost.bin without.
func lfs(t *testing.T) string {
	t.Helper()
	filter, err := filepath.Abs("testdata/lfs.sh")
	must(t, err)
	dir := grown(t)
	git(t, dir, "config", "filter.lfs.clean", "sh '"+filter+"' clean")
	git(t, dir, "config", "filter.lfs.smudge", "sh '"+filter+"' smudge")
	write(t, dir, map[string]string{
		".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n",
		"data/old.bin":   "old content\x00",
		"data/lost.bin":  "lost content\x00",
	})
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-qm", "large files")
	text := git(t, dir, "cat-file", "blob", "HEAD:data/old.bin")
	_, rest, _ := strings.Cut(text, "sha256:")
	hash, _, _ := strings.Cut(rest, "\n")
	write(t, dir, map[string]string{".git/lfs/objects/" + hash[:2] + "/" + hash[2:4] + "/" + hash: "old content\x00"})
	return dir
}

// pointed is the beginning of a pointer.
const pointed = "version https://git-lfs.github.com/spec/v1\n"

// Commits have pointers, the workspace and the export have the content, and a checkout of the
// published branch with the filters of Git LFS is clean and has the content.
func TestLFS(t *testing.T) {
	dir := lfs(t)
	r := cloned(t, dir, ".abl")
	const lf, crlf = "new\ncontent\x00", "new\r\ncontent\r\n"
	want := map[string]string{"data/old.bin": "old content\x00", "new.bin": lf, "a/crlf.bin": crlf, "plain": lf}
	write(t, r.Dir(), map[string]string{"new.bin": lf, "plain": lf, "a/crlf.bin": crlf, "empty.bin": ""})
	snap := snapshot(t, r, "built", "p1-build-1.1")
	if snap.Changed != 4 {
		t.Errorf("changed paths: got %d, want 4", snap.Changed)
	}
	for name, text := range want {
		got, err := os.ReadFile(filepath.Join(r.Dir(), name))
		if err != nil || string(got) != text {
			t.Errorf("%s in the workspace: got %q, %v, want %q", name, got, err, text)
		}
		blob := git(t, r.Dir(), "cat-file", "blob", "HEAD:"+name)
		if got := strings.HasPrefix(blob, pointed); got != strings.HasSuffix(name, ".bin") {
			t.Errorf("%s in the commit is a pointer: got %v, want %v: %q", name, got, !got, blob)
		}
	}
	if raw := git(t, r.Dir(), "hash-object", "--no-filters", "a/crlf.bin"); exists(r.Dir(), raw) {
		t.Error("the content of a file in Git LFS is an object: got true, want false")
	}
	must(t, os.Chtimes(filepath.Join(r.Dir(), "new.bin"), snap.Commit.When, snap.Commit.When))
	if got, err := r.Differs(t.Context(), ""); err != nil || len(got) > 0 {
		t.Errorf("paths that differ after a touch: got %q, %v, want none", got, err)
	}
	exportsContent(t, r, snap.Commit.Hash, want)
	must(t, origin(t, dir).Receive(t.Context(), r, "refs/heads/abl/phase1", snap.Commit.Hash))
	out := filepath.Join(t.TempDir(), "out")
	git(t, dir, "worktree", "add", "-q", out, "abl/phase1")
	if got := git(t, out, "status", "--porcelain"); got != "" {
		t.Errorf("git status of a checkout: got %q, want it clean", got)
	}
	for name, text := range want {
		if got, err := os.ReadFile(filepath.Join(out, name)); err != nil || string(got) != text {
			t.Errorf("%s in a checkout: got %q, %v, want %q", name, got, err, text)
		}
	}
	git(t, dir, "worktree", "remove", out)
	git(t, dir, "switch", "-q", "abl/phase1")
	exportsContent(t, cloned(t, dir, ".abl"), snap.Commit.Hash, want)
}

// The real git-lfs accepts the files of a published branch and checks them out.
func TestGitLFS(t *testing.T) {
	if testing.Short() {
		t.Skip("may install git-lfs")
	}
	if out, err := exec.Command("../../scripts/git-lfs.sh").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	dir := grown(t)
	git(t, dir, "lfs", "install", "--local")
	git(t, dir, "lfs", "track", "*.bin")
	write(t, dir, map[string]string{"old.bin": "old content\x00"})
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-qm", "large files")
	r := cloned(t, dir)
	want := map[string]string{"old.bin": "changed\x00", "new.bin": "new\ncontent\x00", "a/crlf.bin": "new\r\ncontent\r\n"}
	write(t, r.Dir(), want)
	snap := snapshot(t, r, "built", "p1-build-1.1")
	must(t, origin(t, dir).Receive(t.Context(), r, "refs/heads/abl/phase1", snap.Commit.Hash))
	git(t, dir, "lfs", "fsck", "abl/phase1")
	out := filepath.Join(t.TempDir(), "out")
	git(t, dir, "worktree", "add", "-q", out, "abl/phase1")
	if got := git(t, out, "status", "--porcelain"); got != "" {
		t.Errorf("git status of a checkout: got %q, want it clean", got)
	}
	for name, text := range want {
		if got, err := os.ReadFile(filepath.Join(out, name)); err != nil || string(got) != text {
			t.Errorf("%s in a checkout: got %q, %v, want %q", name, got, err, text)
		}
	}
	if got := git(t, out, "lfs", "ls-files", "--name-only"); len(strings.Fields(got)) != len(want) {
		t.Errorf("files in Git LFS: got %q, want %d", got, len(want))
	}
}

// exists reports whether a repository has an object.
func exists(dir, hash string) bool {
	return exec.Command("git", "-C", dir, "cat-file", "-e", hash).Run() == nil
}

// exportsContent compares the files of both exports of a commit, and that lost.bin is a pointer.
func exportsContent(t *testing.T, r *Repo, commit string, want map[string]string) {
	t.Helper()
	to := t.TempDir()
	owner := Owner{os.Geteuid(), os.Getegid()}
	must(t, r.ExportTo(t.Context(), to, commit, "", owner))
	var archive bytes.Buffer
	must(t, r.Export(t.Context(), &archive, commit, ".", owner))
	untarred := t.TempDir()
	tar := exec.Command("tar", "-x", "-C", untarred)
	tar.Stdin = &archive
	must(t, tar.Run())
	for _, at := range []string{to, untarred} {
		for name, text := range want {
			if got, err := os.ReadFile(filepath.Join(at, name)); err != nil || string(got) != text {
				t.Errorf("%s in an export: got %q, %v, want %q", name, got, err, text)
			}
		}
		if got, err := os.ReadFile(filepath.Join(at, "data/lost.bin")); err != nil || !strings.HasPrefix(string(got), pointed) {
			t.Errorf("data/lost.bin in an export: got %q, %v, want its pointer", got, err)
		}
	}
}

// No filter of the workspace or of the user's repository runs for a file in Git LFS, and a secret in
// it is in no commit.
func TestLFSRunsNothing(t *testing.T) {
	dir := lfs(t)
	r := cloned(t, dir)
	ran := filepath.Join(t.TempDir(), "ran")
	for _, at := range []string{dir, r.Dir()} {
		for _, key := range []string{"clean", "smudge", "process"} {
			git(t, at, "config", "filter.lfs."+key, "touch "+ran)
		}
	}
	r, err := Open(r.Dir(), Options{Clone: true, Secrets: map[string]string{"KEY": "a-long-enough-secret-value"}})
	must(t, err)
	write(t, r.Dir(), map[string]string{"new.bin": "a-long-enough-secret-value\x00"})
	if _, err := r.Snapshot(t.Context(), message("built", "p1-build-1.1")); !errors.Is(err, ErrSecret) {
		t.Errorf("a secret in a file in Git LFS: got %v, want %v", err, ErrSecret)
	}
	write(t, r.Dir(), map[string]string{"new.bin": "new"})
	s := snapshot(t, r, "built", "p1-build-1.1")
	must(t, r.ExportTo(t.Context(), t.TempDir(), s.Commit.Hash, "", Owner{os.Geteuid(), os.Getegid()}))
	must(t, origin(t, dir).Receive(t.Context(), r, "refs/heads/abl/phase1", s.Commit.Hash))
	if _, err := os.Lstat(ran); err == nil {
		t.Error("a filter: got a run of it, want none")
	}
}
