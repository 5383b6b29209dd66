package git

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"

	"abl/internal/hostfs"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"golang.org/x/sys/unix"
)

// put adds n different blobs twice each and returns their hashes.
func put(t *testing.T, s *spool, n, size int) (names []string) {
	t.Helper()
	rng := rand.New(rand.NewPCG(3, uint64(n)))
	for range n {
		data := make([]byte, size)
		for i := range data {
			data[i] = byte(rng.IntN(7))
		}
		name := plumbing.ComputeHash(plumbing.BlobObject, data)
		for range 2 {
			must(t, s.add(plumbing.BlobObject, name, int64(size), bytes.NewReader(data)))
		}
		names = append(names, name.String())
	}
	return names
}

func spoolIn(t *testing.T, r *Repo) *spool {
	t.Helper()
	s, err := newSpool(&r.repository, Identity{})
	must(t, err)
	t.Cleanup(s.close)
	return s
}

func TestSpool(t *testing.T) {
	for name, c := range map[string]struct{ count, size, packs int }{
		"few": {3, 100, 0}, "many": {1000, 300, 1}, "few but large": {2, 1 << 20, 1}, "none": {0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := open(t, t.TempDir())
			snapshot(t, r, "s", "1")
			s := spoolIn(t, r)
			names := put(t, s, c.count, c.size)
			must(t, s.finish())
			sound(t, r.dir)
			known := git(t, r.dir, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
			for _, h := range names {
				if !strings.Contains(known, h) {
					t.Errorf("object %s in git's list: got none, want one", h)
				}
			}
			packs, _ := filepath.Glob(r.git.Join("objects/pack/*"))
			if len(packs) != 2*c.packs {
				t.Errorf("files in objects/pack: got %q, want %d", packs, 2*c.packs)
			}
			for _, p := range packs {
				git(t, r.dir, "verify-pack", p)
				if info, err := os.Stat(p); err != nil || info.Mode() != 0o444 {
					t.Errorf("mode of %s: got %v, want 0444 as git sets it", p, info.Mode())
				}
			}
		})
	}
}

// add rejects content that does not match its size and hash. Other objects still work.
func TestSpoolRejectsChangedContent(t *testing.T) {
	r := open(t, t.TempDir())
	snapshot(t, r, "s", "1")
	s := spoolIn(t, r)
	big := bytes.Repeat([]byte("0123456789abcdef"), 300_000)
	name, lie := plumbing.ComputeHash(plumbing.BlobObject, big), plumbing.ComputeHash(plumbing.BlobObject, nil)
	if err := s.add(plumbing.BlobObject, lie, int64(len(big)), bytes.NewReader(big)); !errors.Is(err, hostfs.ErrChanged) {
		t.Errorf("add of content with another hash: got %v, want %v", err, hostfs.ErrChanged)
	}
	if err := s.add(plumbing.BlobObject, name, int64(len(big)), bytes.NewReader(big[:1000])); !errors.Is(err, hostfs.ErrChanged) {
		t.Errorf("add of too little content: got %v, want %v", err, hostfs.ErrChanged)
	}
	must(t, s.add(plumbing.BlobObject, name, int64(len(big)), bytes.NewReader(big)))
	put(t, s, 20, 50)
	must(t, s.finish())
	if got := git(t, r.dir, "cat-file", "-s", name.String()); got != "4800000" {
		t.Errorf("size of the object: got %s, want 4800000", got)
	}
	if out := git(t, r.dir, "count-objects", "-v"); !strings.Contains(out, "in-pack: 21") {
		t.Errorf("git count-objects: got\n%s\nwant 21 objects in the pack", out)
	}
	sound(t, r.dir)
}

func TestSpoolDropped(t *testing.T) {
	r := open(t, t.TempDir())
	s, err := newSpool(&r.repository, Identity{})
	must(t, err)
	put(t, s, 100, 100)
	s.close()
	left, _ := filepath.Glob(r.git.Join("objects/*/*"))
	temps, _ := filepath.Glob(r.git.Join("tmp_abl_*"))
	if len(left)+len(temps) > 0 {
		t.Errorf("files of a dropped spool: got %q and %q, want none", left, temps)
	}
}

// A failed finish, for example on a full disk, leaves no file and no descriptor. The limit applies
// to the whole process, including the log of go test, so the test runs in a child process.
func TestSpoolFails(t *testing.T) {
	if os.Getenv("ABL_TEST_LIMITED") == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSpoolFails$")
		cmd.Env = append(os.Environ(), "ABL_TEST_LIMITED=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return
	}
	r := open(t, t.TempDir())
	descriptors := func() int {
		all, err := os.ReadDir("/proc/self/fd")
		must(t, err)
		return len(all)
	}
	for _, count := range []int{3, 100} {
		s := spoolIn(t, r)
		put(t, s, count, 2000)
		before, err := descriptors(), error(nil)
		withFullDisk(t, func() { err = s.finish() })
		if err == nil {
			t.Errorf("finish of %d objects: got no error, want one", count)
		}
		left, _ := filepath.Glob(r.git.Join("objects/*/*"))
		if now := descriptors(); len(left) > 0 || now != before {
			t.Errorf("files and descriptors left of %d objects: got %q and %d, want none", count, left, now-before)
		}
	}
}

// withFullDisk calls a function with a limit on the size of files.
func withFullDisk(t *testing.T, do func()) {
	t.Helper()
	signal.Ignore(unix.SIGXFSZ)
	defer signal.Reset(unix.SIGXFSZ)
	var was unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_FSIZE, &was))
	must(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 100, Max: was.Max}))
	defer unix.Setrlimit(unix.RLIMIT_FSIZE, &was)
	do()
}

// A snapshot that fails to write its objects does not write its index.
func TestFailedSnapshot(t *testing.T) {
	r := open(t, t.TempDir())
	for i := range 2 * fewObjects {
		write(t, r.dir, map[string]string{fmt.Sprint("f", i): fmt.Sprint(i)})
	}
	pack := r.git.Join("objects/pack")
	must(t, os.Remove(pack))
	must(t, os.WriteFile(pack, nil, 0o644))
	if _, err := r.Snapshot(t.Context(), message("s", "1")); err == nil {
		t.Fatal("Snapshot without a directory for packs: got no error, want one")
	}
	if left, _ := filepath.Glob(r.git.Join("tmp_abl_*")); len(left) > 0 {
		t.Errorf("temporary files: got %q, want none", left)
	}
	must(t, os.Remove(pack))
	snapshot(t, r, "s", "1")
	sound(t, r.dir)
}

// A power failure can leave an empty object of git. The next snapshot replaces it.
func TestEmptyObjectIsReplaced(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	write(t, dir, map[string]string{"a": "1"})
	blob := git(t, dir, "hash-object", "-w", "a")
	object := r.git.Join("objects", blob[:2], blob[2:])
	must(t, os.Remove(object))
	must(t, os.WriteFile(object, nil, 0o444))
	snapshot(t, r, "s", "1")
	sound(t, dir)
}

// An object that another git wrote counts only after a sync.
func TestObjectOfAnother(t *testing.T) {
	if os.Geteuid() == 0 {
		asNobody(t)
		return
	}
	dir := t.TempDir()
	r := open(t, dir)
	write(t, dir, map[string]string{"a": "1"})
	blob := git(t, dir, "hash-object", "-w", "a")
	folder := r.git.Join("objects", blob[:2])
	o, err := r.git.Store().EncodedObject(plumbing.BlobObject, plumbing.NewHash(blob))
	must(t, err)
	must(t, r.git.Loose(o))
	must(t, os.Chmod(folder, 0o300)) // cannot be opened, and so not synced
	if err := r.git.Loose(o); !errors.Is(err, os.ErrPermission) {
		t.Errorf("Loose in a directory that cannot be opened: got %v, want %v", err, os.ErrPermission)
	}
	must(t, os.Chmod(folder, 0o700))
}

// With index.skipHash newer versions of git write no checksum.
func TestIndexWithoutChecksum(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	write(t, dir, map[string]string{"a": "1"})
	git(t, dir, "add", "-A")
	data, err := os.ReadFile(r.git.Join("index"))
	must(t, err)
	clear(data[len(data)-20:])
	if entries, err := decodeIndex(data, false); err != nil || len(entries) != 1 {
		t.Errorf("entries of an index without checksum: got %d, %v, want 1", len(entries), err)
	}
	data[20]++ // with a checksum a torn index is found
	copy(data[len(data)-20:], "12345678901234567890")
	if _, err := decodeIndex(data, false); err == nil {
		t.Error("damaged index: got no error, want one")
	}
}

func TestIndexOutOfOrder(t *testing.T) {
	var b bytes.Buffer
	entries := []*index.Entry{{Name: "a", Mode: filemode.Regular}, {Name: "b", Mode: filemode.Regular}}
	must(t, index.NewEncoder(&b).Encode(&index.Index{Version: 2, Entries: entries}))
	for name, twice := range map[string]string{"out-of-order": "cb", "twice": "aa"} {
		t.Run(name, func(t *testing.T) {
			data := bytes.Clone(b.Bytes())
			const header, stats, entry = 12, 62, 64 // bytes before the entries, before a name, and of both
			data[header+stats], data[header+stats+entry] = twice[0], twice[1]
			clear(data[len(data)-20:])
			if all, err := decodeIndex(data, false); err == nil || !strings.Contains(err.Error(), "out of order") {
				t.Errorf("got %v, %v, want an error: out of order", all, err)
			}
		})
	}
}

// The decoder never panics, and its entries are in order.
func FuzzIndex(f *testing.F) {
	dir := f.TempDir()
	write(f, dir, map[string]string{"a": "1", "b/c": "2"})
	git(f, dir, "init", "-q")
	git(f, dir, "add", "-A")
	for _, version := range []string{"2", "3", "4"} {
		git(f, dir, "update-index", "--index-version", version)
		data, err := os.ReadFile(filepath.Join(dir, ".git/index"))
		must(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		clear(data[max(0, len(data)-20):]) // a checksum would keep the fuzzer out
		entries, err := decodeIndex(data, false)
		for i := 1; err == nil && i < len(entries); i++ {
			if entries[i-1].Name >= entries[i].Name {
				t.Fatalf("order of the entries: got %q before %q, want them sorted", entries[i-1].Name, entries[i].Name)
			}
		}
	})
}

// git packs the user's repository in the background, also while abl reads it.
func TestReadsWhileGitPacks(t *testing.T) {
	for name, object := range map[string]string{"packed again": "main~1^{tree}", "loose before": "main:new.js"} {
		t.Run(name, func(t *testing.T) {
			dir := grown(t)
			git(t, dir, "repack", "-adq")
			s := origin(t, dir).git.Store()
			for _, object := range []string{"main", object} {
				if object != "main" {
					commitFiles(t, dir, map[string]string{"new.js": "3"})
					git(t, dir, "repack", "-adq")
				}
				hash := plumbing.NewHash(git(t, dir, "rev-parse", object))
				if _, err := s.EncodedObject(plumbing.AnyObject, hash); err != nil {
					t.Errorf("%s: got %v, want no error", object, err)
				}
			}
		})
	}
}
