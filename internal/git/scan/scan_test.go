package scan

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"abl/internal/hostfs"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, dir, name, content string) {
	t.Helper()
	path := filepath.Join(dir, name)
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(content), 0o644))
}

// walk returns the result of a walk and the number of new contents.
func walk(t *testing.T, o Options) (r *Result, kept int) {
	t.Helper()
	o.Put = func(plumbing.ObjectType, plumbing.Hash, int64, io.Reader) error { kept++; return nil }
	r, err := Walk(t.Context(), o)
	must(t, err)
	return r, kept
}

func options(dir string) Options {
	return Options{Root: dir, MaxFile: 1 << 20}
}

// A walk ends after maxNames names.
func TestTooManyNames(t *testing.T) {
	w := walker{ctx: t.Context()}
	must(t, w.count(maxNames))
	if err := w.count(1); !errors.Is(err, ErrTooLarge) {
		t.Errorf("one name more: got %v, want %v", err, ErrTooLarge)
	}
}

// after returns the options for a second walk an hour later.
func after(dir string, r *Result) Options {
	o := options(dir)
	o.Known = r.Entries
	o.Written = time.Now().Add(time.Hour)
	return o
}

// sample creates a tree with old files.
func sample(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"a", "b/c", "b/d/e", "b.x", "f/g"} {
		put(t, dir, name, name)
		must(t, os.Chtimes(filepath.Join(dir, name), time.Time{}, time.Now().Add(-time.Hour)))
	}
	return dir
}

func TestStoresOnlyNewContent(t *testing.T) {
	dir := sample(t)
	first, kept := walk(t, options(dir))
	if kept != 5 {
		t.Errorf("contents stored first: got %d, want 5", kept)
	}
	again, kept := walk(t, after(dir, first))
	if kept > 0 || !cmp.Equal(first.Entries, again.Entries) {
		t.Errorf("contents stored without a change: got %d, want 0\n(-first +again)\n%s", kept, cmp.Diff(first, again))
	}
	put(t, dir, "b/d/e", "new")
	if _, kept = walk(t, after(dir, first)); kept != 1 {
		t.Errorf("contents stored after one change: got %d, want 1", kept)
	}
	must(t, os.RemoveAll(filepath.Join(dir, "b")))
	if r, kept := walk(t, after(dir, first)); kept != 0 || len(r.Entries) != 3 {
		t.Errorf("contents and entries without a directory: got %d and %d, want 0 and 3", kept, len(r.Entries))
	}
}

// A file written just before is read again next time.
func TestUnsettled(t *testing.T) {
	dir := sample(t)
	ahead := time.Now().Add(time.Hour)
	must(t, os.Chtimes(filepath.Join(dir, "a"), time.Time{}, ahead))
	r, _ := walk(t, options(dir))
	for _, e := range r.Entries {
		if unsettled := e.Size == 0; unsettled != (e.Name == "a") {
			t.Errorf("%q is unsettled: got %v, want %v", e.Name, unsettled, !unsettled)
		}
	}
}

func TestExcluded(t *testing.T) {
	dir := sample(t)
	put(t, dir, ".gitignore", "f/\n")
	o := options(dir)
	o.Exclude = []byte("b.x")
	r, kept := walk(t, o)
	var paths []string
	for _, e := range r.Entries {
		paths = append(paths, e.Name)
	}
	if want := []string{".gitignore", "a", "b/c", "b/d/e"}; !cmp.Equal(paths, want) || kept != len(want) {
		t.Errorf("paths and stored contents: got %q and %d, want %q and %d", paths, kept, want, len(want))
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Walk(ctx, options(sample(t))); !errors.Is(err, context.Canceled) {
		t.Errorf("Walk with a cancelled context: got %v, want %v", err, context.Canceled)
	}
}

// An agent may replace a file between the status and the open.
func TestSwapped(t *testing.T) {
	for what, swap := range map[string]func(path string) error{
		"file": func(path string) error { return os.WriteFile(path, []byte("x"), 0o644) },
		"fifo": func(path string) error { return syscall.Mkfifo(path, 0o644) },
		"link": func(path string) error { return os.Symlink("/etc/passwd", path) },
		"back": func(path string) error { return os.Symlink("old", path) },
		"dir":  func(path string) error { return os.Mkdir(path, 0o755) },
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, "a", "a")
			fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
			must(t, err)
			defer unix.Close(fd)
			e := name{hostfs.Entry{Dir: fd, Name: "a"}}
			must(t, e.Look())
			must(t, os.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "old"))) // keeps its inode taken
			must(t, swap(filepath.Join(dir, "a")))
			if f, err := e.Open(); err == nil {
				t.Errorf("Open of a replaced file: got %s, want an error", f.Name())
			}
		})
	}
}

func TestTracked(t *testing.T) {
	w := walker{}
	for _, p := range []string{"d/a", "d/b-c", "d/b/x", "d/b/y", "d/b0", "d/z"} {
		w.Known = append(w.Known, &index.Entry{Name: p})
	}
	for _, c := range []struct {
		path   string
		folder bool
		want   string
	}{{"d/a", false, "d/a"}, {"d/a", true, ""}, {"d/b", false, ""}, {"d/b", true, "d/b/x"}, {"d", true, "d/a"}, {"d/c", false, ""}, {"z", true, ""}} {
		got := w.tracked(c.path, c.folder)
		if got == nil && c.want != "" || got != nil && got.Name != c.want {
			t.Errorf("tracked(%q, %t): got %v, want %q", c.path, c.folder, got, c.want)
		}
	}
}

func TestFresh(t *testing.T) {
	type entry = index.Entry
	written := time.Unix(100, 50)
	for name, c := range map[string]struct {
		edit func(was, now *entry)
		want bool
	}{
		"same":                {func(_, _ *entry) {}, true},
		"other-device":        {func(_, now *entry) { now.Dev = 7 }, true},
		"other-size":          {func(_, now *entry) { now.Size = 4 }, false},
		"other-inode":         {func(_, now *entry) { now.Inode = 5 }, false},
		"other-change-time":   {func(_, now *entry) { now.CreatedAt = time.Unix(10, 0) }, false},
		"as-young-as-index":   {func(was, now *entry) { was.ModifiedAt, now.ModifiedAt = written, written }, false},
		"intent-to-add":       {func(was, _ *entry) { was.IntentToAdd = true }, false},
		"unsettled":           {func(was, _ *entry) { was.Size = 0 }, false},
		"unsettled-now-empty": {func(was, now *entry) { was.Size, now.Size = 0, 0 }, false},
		"empty":               {func(was, now *entry) { was.Size, now.Size, was.Hash = 0, 0, emptyBlob }, true},
	} {
		t.Run(name, func(t *testing.T) {
			was := entry{Hash: plumbing.Hash{1}, CreatedAt: time.Unix(9, 0), ModifiedAt: time.Unix(100, 49), Size: 3, Inode: 4}
			now := was
			c.edit(&was, &now)
			if got := fresh(&was, &now, written); got != c.want {
				t.Errorf("fresh: got %v, want %v", got, c.want)
			}
		})
	}
}

// The result of an earlier walk counts only for an unchanged file that is tracked with the same
// content.
func TestKnown(t *testing.T) {
	for name, c := range map[string]struct {
		change func(tracked, now *index.Entry)
		want   bool
	}{
		"unchanged":         {func(_, _ *index.Entry) {}, true},
		"other change time": {func(_, now *index.Entry) { now.CreatedAt = time.Unix(1001, 1) }, false},
		"other mode":        {func(_, now *index.Entry) { now.Mode = filemode.Executable }, false},
		"tracked otherwise": {func(tracked, _ *index.Entry) { tracked.Hash = plumbing.Hash{2} }, false},
		"intended":          {func(tracked, _ *index.Entry) { tracked.IntentToAdd = true }, false},
	} {
		t.Run(name, func(t *testing.T) {
			read := index.Entry{
				Name: "a", Mode: filemode.Regular, Hash: plumbing.Hash{1}, Size: 3, Inode: 4,
				CreatedAt: time.Unix(900, 9), ModifiedAt: time.Unix(100, 9),
			}
			tracked, now := read, read
			now.Hash = plumbing.Hash{}
			c.change(&tracked, &now)
			w := &walker{Options: Options{Read: &Result{read: []*index.Entry{&read}}}}
			if got := w.known(&now, &tracked); got != c.want || got && now.Hash != read.Hash {
				t.Errorf("known: got %t with hash %s, want %t", got, now.Hash, c.want)
			}
		})
	}
}

// A file may change again unnoticed within one tick of the file system's clock.
func TestSettled(t *testing.T) {
	by := time.Unix(1000, 500)
	for name, c := range map[string]struct {
		changed time.Time
		want    bool
	}{
		"before":         {by.Add(-1), true},
		"at that moment": {by, false},
		"whole second":   {time.Unix(999, 0), false},
		"long before":    {time.Unix(998, 0), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := settled(c.changed, by); got != c.want {
				t.Errorf("settled: got %t, want %t", got, c.want)
			}
		})
	}
}

// A file that changed just before is read again next time, even if its modification time is old.
func TestReadsJustChanged(t *testing.T) {
	first, _ := walk(t, options(sample(t)))
	for _, e := range first.read {
		if age := time.Since(e.CreatedAt); age < tick {
			t.Errorf("time from the change of %q to its read: got %v, want at least %v", e.Name, age, tick)
		}
	}
}
