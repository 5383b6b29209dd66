package git

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A commit has the line ends that .gitattributes requires, so that a fresh checkout is clean. No
// filter runs.
func TestNormalize(t *testing.T) {
	const crlf, lf = "a\r\nb\r\n", "a\nb\n"
	for name, c := range map[string]struct {
		attributes string
		before     map[string]string
		file, text string
		want       string // of the commit and the work tree
	}{
		"text":               {"* text\n", nil, "new.txt", crlf, lf},
		"auto":               {"* text=auto\n", nil, "new.txt", crlf, lf},
		"auto, binary":       {"* text=auto\n", nil, "new.bin", "\x00" + crlf, "\x00" + crlf},
		"crlf in a checkout": {"*.bat text eol=crlf\n", nil, "new.bat", crlf, lf},
		"an edit":            {"* text\n", map[string]string{"old.txt": lf}, "old.txt", "new\r\n" + crlf, "new\n" + lf},
		"not text":           {"* text\n*.raw -text\n", nil, "new.raw", crlf, crlf},
		"had it before":      {"* text=auto\n", map[string]string{"old.txt": crlf}, "old.txt", "new\r\n" + crlf, "new\r\n" + crlf},
		"no attributes":      {"", nil, "new.txt", crlf, crlf},
		"a folder's own":     {"", map[string]string{"sub/.gitattributes": "* text\n"}, "sub/new.txt", crlf, lf},
		"a filter":           {"* text filter=evil\n", nil, "new.txt", crlf, lf},
		"other ends":         {"* text\n", nil, "new.txt", lf, lf},
		"a name like a flag": {"* text\n", nil, "--stdin", crlf, lf},
		"a copy of a file":   {"*.txt text\n", map[string]string{"old.raw": crlf}, "new.txt", crlf, lf},
	} {
		t.Run(name, func(t *testing.T) {
			dir := grown(t)
			write(t, dir, c.before)
			git(t, dir, "add", "-A")
			git(t, dir, "commit", "-q", "--allow-empty", "-m", "before")
			if c.attributes != "" {
				write(t, dir, map[string]string{".gitattributes": c.attributes})
				git(t, dir, "add", ".gitattributes")
				git(t, dir, "commit", "-q", "-m", "attributes")
			}
			r := cloned(t, dir, ".abl")
			ran := filepath.Join(t.TempDir(), "ran")
			git(t, r.Dir(), "config", "filter.evil.clean", "touch "+ran)
			git(t, dir, "config", "filter.evil.clean", "touch "+ran)
			path := filepath.Join(r.Dir(), c.file)
			must(t, os.MkdirAll(filepath.Dir(path), 0o755))
			must(t, os.WriteFile(path, []byte(c.text), 0o644))
			s := snapshot(t, r, "built", "p1-build-1.1")
			if out, err := exec.Command("git", "-C", r.Dir(), "cat-file", "blob", s.Commit.Hash+":"+c.file).Output(); err != nil || string(out) != c.want {
				t.Errorf("file in the commit: got %q, %v, want %q", out, err, c.want)
			}
			if got, _ := os.ReadFile(path); string(got) != c.want {
				t.Errorf("file in the work tree: got %q, want %q", got, c.want)
			}
			if differ, err := r.Differs(t.Context(), ""); err != nil || len(differ) > 0 {
				t.Errorf("Differs: got %q, %v, want no path", differ, err)
			}
			must(t, origin(t, dir).Receive(t.Context(), r, "refs/heads/abl/phase1", s.Commit.Hash))
			if _, err := os.Lstat(ran); err == nil {
				t.Error("a filter of the repository: got a run of it, want none")
			}
			git(t, dir, "config", "--unset", "filter.evil.clean")
			out := t.TempDir()
			git(t, dir, "worktree", "add", "-q", out, "abl/phase1")
			if got := git(t, out, "status", "--porcelain"); got != "" && !strings.Contains(name, "before") {
				t.Errorf("git status of a fresh checkout: got %q, want no change", got)
			}
		})
	}
}
