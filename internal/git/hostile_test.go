package git

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// why returns the reason of a skipped path.
func why(s Snap, path string) string {
	for _, k := range s.Skipped {
		if k.Path == path {
			return k.Why
		}
	}
	return ""
}

func TestLeavesOutUnsupportedFiles(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	write(t, dir, map[string]string{
		"ok": "1", "sub/.git/config": "[core]\n\tfsmonitor = touch x\n", "sub/kept": "2", "gitfile/.git": "gitdir: ../.git", "gitfile/kept": "3",
		".GIT/x": "4", "git~1": "5", ".git./x": "6", ".g\u200cit": "7", "a\\.git": "8", ".gitmodules": "[bad", "d/.gitmodules": "->/etc/passwd",
		"d/.gitattributes": "->/etc/passwd",
	})
	must(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o644))
	must(t, syscall.Mkfifo(filepath.Join(dir, ".gitignore"), 0o644))
	l, err := net.Listen("unix", filepath.Join(dir, "sock"))
	must(t, err)
	defer l.Close()
	s := snapshot(t, r, "s", "1")
	if got := git(t, dir, "ls-files"); got != "gitfile/kept\nok\nsub/kept" {
		t.Errorf("committed paths: got %q, want gitfile/kept, ok and sub/kept", got)
	}
	for _, path := range []string{
		"sub/.git", "gitfile/.git", ".GIT", "git~1", ".git.", ".g\u200cit", "a\\.git", ".gitmodules", "d/.gitmodules", "d/.gitattributes",
		"fifo", ".gitignore", "sock",
	} {
		if why(s, path) == "" {
			t.Errorf("skipped paths: got %v, want %q among them", s.Skipped, path)
		}
	}
	sound(t, dir)
}

func TestLargeFiles(t *testing.T) {
	dir := t.TempDir()
	r, err := Open(dir, Options{MaxFile: 3 << 20})
	must(t, err)
	big := filepath.Join(dir, "big")
	write(t, dir, map[string]string{"big": strings.Repeat("x", 3<<20)})
	must(t, os.Truncate(filepath.Join(dir, "big"), 3<<20))
	snapshot(t, r, "at the limit", "1")
	must(t, os.Truncate(big, 100<<30))
	s := snapshot(t, r, "beyond", "2")
	if why(s, "big") == "" || git(t, dir, "ls-files") != "" {
		t.Errorf("skipped and committed paths: got %v and %q, want only big, skipped",
			s.Skipped, git(t, dir, "ls-files"))
	}
	sound(t, dir)
}

// A tracked file stays while it does not change, whatever its size.
func TestLargeFilesTracked(t *testing.T) {
	dir := t.TempDir()
	git(t, dir, "init", "-q")
	write(t, dir, map[string]string{"big": strings.Repeat("x", 2<<20)})
	commitByGit(t, dir)
	must(t, os.Chtimes(filepath.Join(dir, "big"), time.Now(), time.Now().Add(-time.Hour)))
	r, err := Open(dir, Options{MaxFile: 1 << 20})
	must(t, err)
	if s := snapshot(t, r, "s", "1"); s.Changed != 0 || len(s.Skipped) > 0 {
		t.Errorf("got %+v, want no change and no path left out", s)
	}
	clean(t, dir)
}

func TestMemoryIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("240 MiB are compressed")
	}
	dir := t.TempDir()
	r := open(t, dir)
	for i := range 6 {
		write(t, dir, map[string]string{fmt.Sprint(i): "x"})
		must(t, os.Truncate(filepath.Join(dir, fmt.Sprint(i)), int64(40<<20+i)))
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	snapshot(t, r, "s", "1")
	runtime.ReadMemStats(&after)
	if spent := (after.TotalAlloc - before.TotalAlloc) >> 20; spent > 60 {
		t.Errorf("memory allocated for six files of 40 MiB: got %d MiB, want at most 60 MiB", spent)
	}
	sound(t, dir)
}

// Files below the maximum depth are left out and listed. An error would prevent all later commits.
func TestDepth(t *testing.T) {
	dir, deep := t.TempDir(), strings.Repeat("d/", 256)
	write(t, dir, map[string]string{deep + "kept": "", deep + "4/5/left": "", "a": ""})
	s := snapshot(t, open(t, dir), "s", "1")
	if got := git(t, dir, "ls-files"); got != "a\n"+deep+"kept" {
		t.Errorf("committed paths: got %q, want a and the file 256 directories deep", got)
	}
	if why(s, deep+"4") == "" {
		t.Errorf("skipped paths: got %v, want the path that is too deep among them", s.Skipped)
	}
	sound(t, dir)
}

func TestLinksAreNotFollowed(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	write(t, outside, map[string]string{"secret": "s", ".gitignore": "*"})
	write(t, dir, map[string]string{"abs": "->/etc/shadow", "dir": "->" + outside, "up": "->../../..", ".gitignore": "->" + outside + "/.gitignore"})
	r := open(t, dir)
	s := snapshot(t, r, "s", "1")
	if got := git(t, dir, "ls-files"); got != "abs\ndir\nup" {
		t.Errorf("committed paths: got %q, want abs, dir and up", got)
	}
	if why(s, ".gitignore") == "" {
		t.Errorf("skipped paths: got %v, want the link .gitignore among them", s.Skipped)
	}
	if got := git(t, dir, "cat-file", "blob", "HEAD:abs"); got != "/etc/shadow" {
		t.Errorf("target of the link: got %q, want /etc/shadow", got)
	}
}

// Changed content with the old modification time is detected by the change time, or because the
// entry is too young.
func TestSameSizeSameTime(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	r := open(t, dir)
	stamp := time.Now().Add(-time.Hour)
	for i := range 20 {
		write(t, dir, map[string]string{"f": fmt.Sprintf("%02d", i)})
		if i%2 == 0 {
			must(t, os.Chtimes(path, stamp, stamp))
		}
		if s := snapshot(t, r, "s", fmt.Sprint(i)); s.Changed != 1 {
			t.Fatalf("changed paths in round %d: got %d, want 1", i, s.Changed)
		}
		if got := git(t, dir, "cat-file", "blob", "HEAD:f"); got != fmt.Sprintf("%02d", i) {
			t.Fatalf("committed file in round %d: got %q, want %q", i, got, fmt.Sprintf("%02d", i))
		}
	}
}

func TestUnreadableIsListed(t *testing.T) {
	if os.Geteuid() == 0 {
		asNobody(t)
		return
	}
	dir := t.TempDir()
	r := open(t, dir)
	write(t, dir, map[string]string{"a": "1", "shut/b": "2"})
	must(t, os.Chmod(filepath.Join(dir, "a"), 0))
	must(t, os.Chmod(filepath.Join(dir, "shut"), 0))
	defer os.Chmod(filepath.Join(dir, "shut"), 0o755)
	s := snapshot(t, r, "s", "1")
	if why(s, "a") == "" || why(s, "shut/") == "" && why(s, "shut") == "" {
		t.Errorf("got %v, want a and shut left out", s.Skipped)
	}
}
