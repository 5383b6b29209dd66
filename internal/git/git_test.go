package git

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// git runs the installed git with default settings, to check abl's work.
func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	out, err := tryGit(dir, args...)
	if err != nil {
		t.Fatalf("git %s in %s: %v\n%s", strings.Join(args, " "), dir, err, out)
	}
	return out
}

func tryGit(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-c", "gc.auto=0", "-c", "user.name=p", "-c", "user.email=p@localhost"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_SYSTEM=/dev/null", "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// sound checks that git fsck reports nothing.
func sound(t testing.TB, dir string) {
	t.Helper()
	if out := git(t, dir, "fsck", "--strict", "--full", "--no-dangling"); out != "" {
		t.Fatalf("git fsck --strict: got\n%s\nwant no output", out)
	}
}

// clean checks that git reports no changes in the work tree.
func clean(t testing.TB, dir string) {
	t.Helper()
	if out := git(t, dir, "status", "--porcelain"); out != "" {
		t.Fatalf("git status: got\n%s\nwant no change", out)
	}
}

func open(t testing.TB, dir string) *Repo {
	t.Helper()
	r, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	r.git.Wait = 100 * time.Millisecond
	return r
}

func message(subject, call string) Message {
	return Message{Subject: subject, Call: call}
}

func snapshot(t testing.TB, r *Repo, subject, call string) Snap {
	t.Helper()
	s, err := r.Snapshot(t.Context(), message(subject, call))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// write creates files below dir from a map of paths to content. "->x" creates a link to x, a path
// with a trailing slash a directory.
func write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if strings.HasSuffix(name, "/") {
			must(t, os.MkdirAll(path, 0o755))
			continue
		}
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		if target, ok := strings.CutPrefix(content, "->"); ok {
			must(t, os.Symlink(target, path))
			continue
		}
		must(t, os.WriteFile(path, []byte(content), 0o644))
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
