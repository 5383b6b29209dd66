package hostfs

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// CopyInto preserves modes, times and links, and keeps existing files of the target.
func TestCopyInto(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	long := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	put := func(dir, name, text string, mode fs.FileMode) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, long, long); err != nil {
			t.Fatal(err)
		}
	}
	put(from, "bin/tool", "tool", 0o755)
	put(from, "lib/old.js", "theirs", 0o644)
	put(to, "lib/old.js", "mine", 0o644)
	if err := os.Symlink("/etc/passwd", filepath.Join(from, "bin/link")); err != nil {
		t.Fatal(err)
	}
	if err := CopyInto(to, from, os.Getuid(), os.Getgid()); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(to, "bin/tool")); err != nil || info.Mode() != 0o755 || !info.ModTime().Equal(long) {
		t.Errorf("bin/tool: got %v, %v, want mode 0755 and time %v", info, err, long)
	}
	if data, err := os.ReadFile(filepath.Join(to, "lib/old.js")); err != nil || string(data) != "mine" {
		t.Errorf("lib/old.js: got %q, %v, want %q", data, err, "mine")
	}
	if link, err := os.Readlink(filepath.Join(to, "bin/link")); err != nil || link != "/etc/passwd" {
		t.Errorf("target of bin/link: got %q, %v, want /etc/passwd", link, err)
	}
}

// A link in the target that leads out of it is not followed.
func TestCopyIntoStaysInside(t *testing.T) {
	from, to, outside := t.TempDir(), t.TempDir(), t.TempDir()
	if err := os.MkdirAll(filepath.Join(from, "vendor"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(from, "vendor/x"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(to, "vendor")); err != nil {
		t.Fatal(err)
	}
	err := CopyInto(to, from, os.Getuid(), os.Getgid())
	if _, serr := os.Stat(filepath.Join(outside, "x")); err == nil || serr == nil {
		t.Errorf("got %v, and the file outside %v, want an error and no file", err, serr)
	}
}
