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

	"abl/orchestrator/workspace/gitindex"
	"abl/orchestrator/workspace/gitobj"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// kept counts what a walk stores.
type kept struct {
	mu    sync.Mutex
	kinds map[gitobj.Kind]int
}

func (k *kept) Put(kind gitobj.Kind, _ gitindex.Hash, _ []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kinds[kind]++
	return nil
}

func (k *kept) PutStream(kind gitobj.Kind, name gitindex.Hash, _ int64, r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	return errors.Join(err, k.Put(kind, name, nil))
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
	k := &kept{kinds: map[gitobj.Kind]int{}}
	o.Store = k
	r, err := Walk(t.Context(), o)
	must(t, err)
	return r, k
}

func options(dir string) Options {
	return Options{Root: dir, Index: &gitindex.Index{}, MaxFile: 1 << 20, MaxDepth: 100, MaxEntries: 1000}
}

// after are options for a second walk, an hour later.
func after(dir string, r *Result) Options {
	o := options(dir)
	o.Index = &gitindex.Index{Entries: r.Entries, Tree: r.Tree}
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
	if want := map[gitobj.Kind]int{gitobj.Blob: 5, gitobj.TreeKind: 4}; !cmp.Equal(k.kinds, want) {
		t.Errorf("first: %v", k.kinds)
	}
	again, k := walk(t, after(dir, first))
	if len(k.kinds) > 0 || !cmp.Equal(first.Entries, again.Entries) || !cmp.Equal(first.Tree, again.Tree) {
		t.Errorf("unchanged: %v\n%s", k.kinds, cmp.Diff(first, again))
	}
	put(t, dir, "b/d/e", "new")
	_, k = walk(t, after(dir, first))
	if want := map[gitobj.Kind]int{gitobj.Blob: 1, gitobj.TreeKind: 3}; !cmp.Equal(k.kinds, want) {
		t.Errorf("one changed: %v", k.kinds)
	}
	must(t, os.RemoveAll(filepath.Join(dir, "b")))
	_, k = walk(t, after(dir, first))
	if want := map[gitobj.Kind]int{gitobj.Blob: 0, gitobj.TreeKind: 1}; k.kinds[gitobj.Blob] != 0 || k.kinds[gitobj.TreeKind] != want[gitobj.TreeKind] {
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
		if unsettled := e.Stat.Size == 0; unsettled != (e.Path == "a") {
			t.Errorf("%q unsettled is %v", e.Path, unsettled)
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
		paths = append(paths, e.Path)
	}
	if want := []string{".gitignore", "a", "b/c", "b/d/e"}; !cmp.Equal(paths, want) || len(k.kinds) > 0 || r.Tree != nil {
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
		c := content{fd: fd, e: e, entry: &gitindex.Entry{Path: "a"}}
		if f, err := c.open(); err == nil {
			t.Errorf("%s: opened as %d", what, f)
		}
	}
}

func TestTake(t *testing.T) {
	list := func(paths ...string) (es []gitindex.Entry) {
		for _, p := range paths {
			es = append(es, gitindex.Entry{Path: p})
		}
		return es
	}
	f := folder{path: "d/", known: list("d/a", "d/b-c", "d/b/x", "d/b/y", "d/b0", "d/z")}
	for _, c := range []struct {
		key   string
		count int
		gone  bool
	}{{"a", 1, false}, {"b", 0, false}, {"b/", 2, true}, {"c", 0, true}, {"z/", 0, true}} {
		mine, gone := f.take(c.key)
		if len(mine) != c.count || gone != c.gone {
			t.Errorf("take(%q) = %v, %v", c.key, mine, gone)
		}
	}
	if len(f.known) != 0 {
		t.Errorf("left: %v", f.known)
	}
}
