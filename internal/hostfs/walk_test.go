package hostfs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Walk enters directories beyond the limits of paths and descriptors.
func TestWalkDeep(t *testing.T) {
	const depth = 1000
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	top := t.TempDir()
	dir, err := OpenDir(unix.AT_FDCWD, top)
	if err != nil {
		t.Fatal(err)
	}
	for range depth {
		if err := unix.Mkdirat(fd(dir), "dd", 0o755); err != nil {
			t.Fatal(err)
		}
		next, err := OpenDir(fd(dir), "dd")
		dir.Close()
		if err != nil {
			t.Fatal(err)
		}
		dir = next
	}
	dir.Close()
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 64, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	seen := 0
	err = Walk(top, "", func(Entry) error {
		seen++
		return nil
	})
	if restore := unix.Setrlimit(unix.RLIMIT_NOFILE, &old); err != nil || restore != nil || seen != depth {
		t.Errorf("visited entries: got %d, %v, %v, want %d", seen, err, restore, depth)
	}
	flattened(t, top, depth)
}

// flattened removes the deep tree, which os.RemoveAll cannot.
func flattened(t *testing.T, top string, depth int) {
	t.Helper()
	for range depth {
		inner, spare := filepath.Join(top, "dd"), filepath.Join(top, "spare")
		if err := os.Rename(inner, spare); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(spare, "dd"), inner); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if err := os.Remove(spare); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWalkNoticesAMove(t *testing.T) {
	top := t.TempDir()
	if err := os.MkdirAll(filepath.Join(top, "in/a/b"), 0o755); err != nil {
		t.Fatal(err)
	}
	err := Walk(filepath.Join(top, "in"), "", func(e Entry) error {
		if e.Name == "b" { // the walk is in a, which is moved out of the tree
			return os.Rename(filepath.Join(top, "in/a"), filepath.Join(top, "out"))
		}
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "was moved during the walk") {
		t.Errorf("Walk: got %v, want an error about the moved directory", err)
	}
}

// Walk visits links without entering them, and skips a name only in the top directory.
func TestWalk(t *testing.T) {
	top := t.TempDir()
	for _, dir := range []string{"a/b", "a/.git", ".git/x", "c"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("..", filepath.Join(top, "c/up")); err != nil {
		t.Fatal(err)
	}
	look := func(walk func(func(Entry) error) error) string {
		var seen []string
		if err := walk(func(e Entry) error { seen = append(seen, e.Path()); return nil }); err != nil {
			t.Fatal(err)
		}
		slices.Sort(seen)
		return strings.Join(seen, " ")
	}
	if got := look(func(v func(Entry) error) error { return Walk(top, ".git", v) }); got != "a a/.git a/b c c/up" {
		t.Errorf("visited paths: got %s, want a a/.git a/b c c/up", got)
	}
	dir, err := OpenDir(unix.AT_FDCWD, top)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if got := look(func(v func(Entry) error) error { return WalkAt(fd(dir), "a", "", v) }); got != ".git b" {
		t.Errorf("visited paths: got %s, want .git b", got)
	}
	if err := Walk(filepath.Join(top, "c/up"), "", nil); err == nil {
		t.Error("Walk of a link: got no error, want one")
	}
}
