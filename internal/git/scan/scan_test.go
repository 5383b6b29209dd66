package scan

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// kept counts what a walk stores.
type kept struct {
	mu    sync.Mutex
	kinds map[plumbing.ObjectType]int
}

func (k *kept) Put(kind plumbing.ObjectType, _ plumbing.Hash, _ int64, r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kinds[kind]++
	return err
}

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

func walk(t *testing.T, o Options) (*Result, *kept) {
	t.Helper()
	k := &kept{kinds: map[plumbing.ObjectType]int{}}
	o.Store = k
	r, err := Walk(t.Context(), o)
	must(t, err)
	return r, k
}

func options(dir string) Options {
	return Options{Root: dir, MaxFile: 1 << 20, MaxDepth: 100, MaxEntries: 1000}
}

// after are options for a second walk, an hour later.
func after(dir string, r *Result) Options {
	o := options(dir)
	o.Known, o.Trees = r.Entries, r.Trees
	o.Written = time.Now().Add(time.Hour)
	return o
}

// sample makes a tree whose files have long been settled.
func sample(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"a", "b/c", "b/d/e", "b.x", "f/g"} {
		put(t, dir, name, name)
		must(t, os.Chtimes(filepath.Join(dir, name), time.Time{}, time.Now().Add(-time.Hour)))
	}
	return dir
}

func TestStoresWhatIsNew(t *testing.T) {
	dir := sample(t)
	first, k := walk(t, options(dir))
	if want := map[plumbing.ObjectType]int{plumbing.BlobObject: 5, plumbing.TreeObject: 4}; !cmp.Equal(k.kinds, want) {
		t.Errorf("first: %v", k.kinds)
	}
	again, k := walk(t, after(dir, first))
	if len(k.kinds) > 0 || !cmp.Equal(first.Entries, again.Entries) || !cmp.Equal(first.Trees, again.Trees) {
		t.Errorf("unchanged: %v\n%s", k.kinds, cmp.Diff(first, again))
	}
	put(t, dir, "b/d/e", "new")
	_, k = walk(t, after(dir, first))
	if want := map[plumbing.ObjectType]int{plumbing.BlobObject: 1, plumbing.TreeObject: 3}; !cmp.Equal(k.kinds, want) {
		t.Errorf("one changed: %v", k.kinds)
	}
	must(t, os.RemoveAll(filepath.Join(dir, "b")))
	_, k = walk(t, after(dir, first))
	if want := map[plumbing.ObjectType]int{plumbing.BlobObject: 0, plumbing.TreeObject: 1}; k.kinds[plumbing.BlobObject] != 0 || k.kinds[plumbing.TreeObject] != want[plumbing.TreeObject] {
		t.Errorf("a folder gone: %v", k.kinds)
	}
}

// TestUnsettled: a file written a moment ago is read again next time.
func TestUnsettled(t *testing.T) {
	dir := sample(t)
	ahead := time.Now().Add(time.Hour)
	must(t, os.Chtimes(filepath.Join(dir, "a"), time.Time{}, ahead))
	r, _ := walk(t, options(dir))
	for _, e := range r.Entries {
		if unsettled := e.Size == 0; unsettled != (e.Name == "a") {
			t.Errorf("%q unsettled is %v", e.Name, unsettled)
		}
	}
}

func TestNamesOnly(t *testing.T) {
	dir := sample(t)
	put(t, dir, ".gitignore", "f/\n")
	o := options(dir)
	o.NamesOnly, o.Exclude = true, []byte("b.x")
	r, k := walk(t, o)
	var paths []string
	for _, e := range r.Entries {
		paths = append(paths, e.Name)
	}
	if want := []string{".gitignore", "a", "b/c", "b/d/e"}; !cmp.Equal(paths, want) || len(k.kinds) > 0 {
		t.Errorf("%q %v", paths, k.kinds)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Walk(ctx, options(sample(t))); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// TestSwapped: between the look at a name and the opening of it an agent may
// put something else there.
func TestSwapped(t *testing.T) {
	for what, swap := range map[string]func(path string) error{
		"file": func(path string) error { return os.WriteFile(path, []byte("x"), 0o644) },
		"fifo": func(path string) error { return syscall.Mkfifo(path, 0o644) },
		"link": func(path string) error { return os.Symlink("/etc/passwd", path) },
		"back": func(path string) error { return os.Symlink("old", path) },
		"dir":  func(path string) error { return os.Mkdir(path, 0o755) },
	} {
		dir := t.TempDir()
		put(t, dir, "a", "a")
		fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		must(t, err)
		defer unix.Close(fd)
		e := &name{key: "a"}
		must(t, unix.Fstatat(fd, "a", &e.stat, unix.AT_SYMLINK_NOFOLLOW))
		must(t, os.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "old"))) // keeps its inode taken
		must(t, swap(filepath.Join(dir, "a")))
		if f, err := openRegular(fd, e); err == nil {
			t.Errorf("%s: opened as %d", what, f)
		}
	}
}

func TestTake(t *testing.T) {
	list := func(paths ...string) (es []*index.Entry) {
		for _, p := range paths {
			es = append(es, &index.Entry{Name: p})
		}
		return es
	}
	f := folder{path: "d/", known: list("d/a", "d/b-c", "d/b/x", "d/b/y", "d/b0", "d/z")}
	for _, c := range []struct {
		key   string
		count int
	}{{"a", 1}, {"b", 0}, {"b/", 2}, {"c", 0}, {"z/", 0}} {
		if mine := f.take(c.key); len(mine) != c.count {
			t.Errorf("take(%q) = %v", c.key, mine)
		}
	}
	if len(f.known) != 0 {
		t.Errorf("left: %v", f.known)
	}
}

func TestFresh(t *testing.T) {
	type entry = index.Entry
	written := time.Unix(100, 50)
	for name, c := range map[string]struct {
		edit func(was, now *entry)
		want bool
	}{
		"same":                 {func(_, _ *entry) {}, true},
		"other device":         {func(_, now *entry) { now.Dev = 7 }, true},
		"other size":           {func(_, now *entry) { now.Size = 4 }, false},
		"other inode":          {func(_, now *entry) { now.Inode = 5 }, false},
		"other change time":    {func(_, now *entry) { now.CreatedAt = time.Unix(10, 0) }, false},
		"as young as index":    {func(was, now *entry) { was.ModifiedAt, now.ModifiedAt = written, written }, false},
		"intent to add":        {func(was, _ *entry) { was.IntentToAdd = true }, false},
		"unsettled":            {func(was, _ *entry) { was.Size = 0 }, false},
		"unsettled, now empty": {func(was, now *entry) { was.Size, now.Size = 0, 0 }, false},
		"empty":                {func(was, now *entry) { was.Size, now.Size, was.Hash = 0, 0, emptyBlob }, true},
	} {
		was := entry{Hash: plumbing.Hash{1}, CreatedAt: time.Unix(9, 0), ModifiedAt: time.Unix(100, 49), Size: 3, Inode: 4}
		now := was
		c.edit(&was, &now)
		if got := fresh(&was, &now, written); got != c.want {
			t.Errorf("%s: fresh is %v, want %v", name, got, c.want)
		}
	}
}
