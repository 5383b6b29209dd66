package git

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// bytesRead returns the number of bytes that do reads from files.
func bytesRead(t *testing.T, do func()) (n int64) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	count := func() (n int64) {
		data, err := os.ReadFile("/proc/thread-self/io")
		if err != nil {
			t.Skip(err)
		}
		_, err = fmt.Sscanf(string(data), "rchar: %d", &n)
		must(t, err)
		return n
	}
	before := count()
	do()
	return count() - before
}

const (
	largeFiles = 8
	largeFile  = 256 << 10 // bytes
	largeTree  = largeFiles * largeFile
)

// moved opens a repository whose files have newer change times than its commit, as after a chown by
// abl.
func moved(t *testing.T) (*Repo, string) {
	t.Helper()
	dir, files := t.TempDir(), map[string]string{}
	for i := range largeFiles {
		files[fmt.Sprintf("folder/file%d", i)] = strings.Repeat(fmt.Sprintln(i), largeFile/2)
	}
	write(t, dir, files)
	for name := range files {
		must(t, os.Chtimes(filepath.Join(dir, name), time.Time{}, time.Now().Add(-time.Hour)))
	}
	snapshot(t, open(t, dir), "s", "1")
	for name := range files {
		must(t, os.Chmod(filepath.Join(dir, name), 0o640))
	}
	waitForTick(t)
	return open(t, dir), dir
}

// waitForTick waits until the clock of the file system has advanced.
func waitForTick(t *testing.T) {
	t.Helper()
	for begun := time.Now(); time.Since(begun) < 50*time.Millisecond; {
		runtime.Gosched()
	}
}

// An unchanged tree is read once per run. Listing names reads no file.
func TestReadsOnce(t *testing.T) {
	r, _ := moved(t)
	differs := func() {
		if paths, err := r.Differs(t.Context(), ""); err != nil || len(paths) > 0 {
			t.Errorf("Differs: got %q, %v, want no path", paths, err)
		}
	}
	for _, c := range []struct {
		name string
		most int64
		do   func()
	}{
		{"names", largeFile, func() {
			if paths, err := r.Files(t.Context(), 3); err != nil || len(paths) != 3 {
				t.Errorf("Files: got %q, %v, want 3", paths, err)
			}
		}},
		{"first look", largeTree + largeFile, differs},
		{"second look", largeFile, differs},
		{"tree", largeFile, func() {
			if all, err := r.Tree(t.Context()); err != nil || len(all) != largeFiles {
				t.Errorf("paths of Tree: got %d, %v, want %d", len(all), err, largeFiles)
			}
		}},
		{"snapshot", largeFile, func() { snapshot(t, r, "s", "2") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := bytesRead(t, c.do); got > c.most {
				t.Errorf("bytes read of a tree of %d: got %d, want at most %d", largeTree, got, c.most)
			}
		})
	}
}

// A change between two walks is detected even if its author restores size and time.
func TestSeesForgedTimes(t *testing.T) {
	const name = "folder/file3"
	other := []byte(strings.Repeat("x\n", largeFile/2))
	for what, change := range map[string]func(t *testing.T, path string){
		"written in place": func(t *testing.T, path string) { must(t, os.WriteFile(path, other, 0o640)) },
		"replaced": func(t *testing.T, path string) {
			must(t, os.WriteFile(path+".new", other, 0o640))
			must(t, os.Rename(path+".new", path))
		},
		"mode": func(t *testing.T, path string) { must(t, os.Chmod(path, 0o750)) },
	} {
		t.Run(what, func(t *testing.T) {
			r, dir := moved(t)
			if paths, err := r.Differs(t.Context(), ""); err != nil || len(paths) > 0 {
				t.Fatalf("Differs before the change: got %q, %v, want no path", paths, err)
			}
			path := filepath.Join(dir, name)
			was, err := os.Stat(path)
			must(t, err)
			change(t, path)
			must(t, os.Chtimes(path, was.ModTime(), was.ModTime()))
			is, err := os.Stat(path)
			must(t, err)
			if is.Size() != was.Size() || !is.ModTime().Equal(was.ModTime()) {
				t.Fatalf("size and time: got %d and %v, want %d and %v",
					is.Size(), is.ModTime(), was.Size(), was.ModTime())
			}
			if paths, err := r.Differs(t.Context(), ""); err != nil || len(paths) != 1 || paths[0] != name {
				t.Errorf("Differs: got %q, %v, want %q", paths, err, name)
			}
		})
	}
}

// Listing the differences between two commits reads no file.
func TestChangesReadNothing(t *testing.T) {
	r, _ := moved(t)
	head, _, err := r.Head()
	must(t, err)
	var all []Change
	got := bytesRead(t, func() {
		must(t, Changes(t.Context(), r, "", head.Hash, func(c Change) error { all = append(all, c); return nil }))
	})
	if len(all) != largeFiles || got > largeFile {
		t.Errorf("changes and bytes read: got %d and %d, want %d and at most %d", len(all), got, largeFiles, largeFile)
	}
	text, err := all[0].Texts()
	if size := all[0].Size(); err != nil || size != largeFile || text.New == nil || int64(len(*text.New)) != size {
		t.Errorf("size of the change: got %d, %v, want %d and a text of this size", size, err, largeFile)
	}
}
