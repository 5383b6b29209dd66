package git

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// looked does everything with a repository that abl does before and during a clone.
func looked(ctx context.Context, dir, to string, without []string) error {
	o, err := OpenOrigin(dir)
	if err != nil {
		return err
	}
	_, head, err := o.Head()
	if err != nil {
		return err
	}
	if _, err = o.Files(without, 100); err != nil {
		return err
	}
	if _, err = o.Remarks(head, without); err != nil {
		return err
	}
	return o.Clone(ctx, to, head, "abl/phase1", without)
}

// abl neither blocks on nor follows anything that replaces a file of .git.
func TestOriginOfOddFiles(t *testing.T) {
	places := map[string]bool{ // whether the clone is made all the same
		"HEAD": false, "config": false, "config.worktree": false, "packed-refs": false, "refs/heads/main": false, "refs/heads/other": false,
		"shallow": false,
		"objects": false, "objects/pack": false, "objects/PACK.idx": false, "objects/PACK.pack": false, "objects/LOOSE": false,
		"hooks": true, "index": true, "info": true, "worktrees": true, "worktrees/other/HEAD": false, "objects/info/alternates": false,
	}
	loose, packed := grown(t), grown(t)
	git(t, packed, "repack", "-qad")
	commit := git(t, loose, "rev-parse", "HEAD")
	for place, fine := range places {
		for kind, put := range map[string]func(string) error{
			"FIFO":   func(at string) error { return unix.Mkfifo(at, 0o600) },
			"device": func(at string) error { return os.Symlink("/dev/zero", at) },
		} {
			t.Run(place+"/"+kind, func(t *testing.T) {
				dir, from := t.TempDir(), loose
				if strings.Contains(place, "PACK") {
					from = packed
				}
				must(t, os.CopyFS(dir, os.DirFS(from)))
				at := strings.ReplaceAll(place, "LOOSE", commit[:2]+"/"+commit[2:])
				if suffix, is := strings.CutPrefix(place, "objects/PACK"); is {
					packs, err := filepath.Glob(filepath.Join(dir, ".git/objects/pack/*"+suffix))
					must(t, err)
					at, err = filepath.Rel(filepath.Join(dir, ".git"), packs[0])
					must(t, err)
				}
				at = filepath.Join(dir, ".git", at)
				must(t, errors.Join(os.RemoveAll(at), os.MkdirAll(filepath.Dir(at), 0o755)))
				must(t, put(at))
				err := looked(t.Context(), dir, t.TempDir(), nil)
				if fine != (err == nil) {
					t.Errorf("got %v, want an error: %v", err, !fine)
				}
			})
		}
	}
}

// A file of the commit is not read if its object is a FIFO, on which git would block.
func TestOriginOfOddBlob(t *testing.T) {
	dir := grown(t)
	blob := git(t, dir, "rev-parse", "HEAD:lib/a.js")
	at := filepath.Join(dir, ".git/objects", blob[:2], blob[2:])
	must(t, errors.Join(os.Remove(at), unix.Mkfifo(at, 0o600)))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := looked(ctx, dir, t.TempDir(), nil); !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), "is a FIFO") {
		t.Errorf("got %v, want an error that names the FIFO", err)
	}
}

// An additional work tree has another HEAD, but git also reads the first one.
func TestOriginWithOddFirstHead(t *testing.T) {
	dir, tree := grown(t), filepath.Join(t.TempDir(), "tree")
	git(t, dir, "worktree", "add", "-q", tree)
	head := filepath.Join(dir, ".git/HEAD")
	must(t, os.Remove(head))
	must(t, unix.Mkfifo(head, 0o600))
	if _, err := OpenOrigin(tree); !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), `"HEAD" is a FIFO`) {
		t.Errorf("got %v, want an error that names HEAD", err)
	}
}

// objectFile writes a loose object that declares a size and contains so many zeros.
func objectFile(t *testing.T, dir, hash string, declares, holds int64) {
	t.Helper()
	var data bytes.Buffer
	w := zlib.NewWriter(&data)
	fmt.Fprintf(w, "blob %d\x00", declares)
	zeros := make([]byte, 1<<20)
	for left := holds; left > 0; left -= int64(len(zeros)) {
		_, err := w.Write(zeros[:min(left, int64(len(zeros)))])
		must(t, err)
	}
	must(t, w.Close())
	at := filepath.Join(dir, ".git/objects", hash[:2], hash[2:])
	must(t, os.RemoveAll(at))
	must(t, os.WriteFile(at, data.Bytes(), 0o600))
}

func TestOriginOfLargeFiles(t *testing.T) {
	for _, tt := range []struct {
		name            string
		declares, holds int64
		without         []string
		want            string
	}{
		{"declared", 1500 * mib, 1, nil, "git fsck lists damaged objects"},
		{"excluded", 1500 * mib, 1, []string{"lib"}, ""},
		{"undeclared", 10, 64 * mib, nil, "git fsck lists damaged objects"},
		{"short", 32 * mib, 31 * mib, nil, "git fsck lists damaged objects"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := grown(t)
			objectFile(t, dir, git(t, dir, "rev-parse", "HEAD:lib/a.js"), tt.declares, tt.holds)
			to := t.TempDir()
			took := allocated(func() {
				if err := looked(t.Context(), dir, to, tt.without); tt.want == "" && err != nil ||
					tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
					t.Errorf("got %v, want %q", err, tt.want)
				}
			})
			if took > 16*mib {
				t.Errorf("allocated bytes: got %d, want at most %d", took, 16*mib)
			}
		})
	}
}

// A large file is streamed.
func TestCloneStreams(t *testing.T) {
	const size = 32 << 20
	for _, packed := range []bool{false, true} {
		t.Run(fmt.Sprintf("packed %v", packed), func(t *testing.T) {
			dir, to := grown(t), t.TempDir()
			must(t, os.WriteFile(filepath.Join(dir, "large"), make([]byte, size), 0o600))
			git(t, dir, "add", "large")
			git(t, dir, "commit", "-qm", "large")
			if packed {
				git(t, dir, "repack", "-qad")
			}
			if took := allocated(func() { must(t, looked(t.Context(), dir, to, nil)) }); took > size/2 {
				t.Errorf("bytes allocated to clone %d: got %d, want at most %d", size, took, size/2)
			}
			sound(t, to)
			clean(t, to)
		})
	}
}

// allocated returns the number of bytes that do allocates.
func allocated(do func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// Writing to the user's repository follows no link in it.
func TestReceiveFollowsNoLink(t *testing.T) {
	dir, outside := grown(t), t.TempDir()
	r := cloned(t, dir)
	write(t, r.Dir(), map[string]string{"new.js": "3"})
	made := snapshot(t, r, "built", "p1-build-1.1")
	o := origin(t, dir)
	must(t, os.Symlink(outside, filepath.Join(dir, ".git/refs/heads/abl")))
	if err := o.Receive(t.Context(), r, "refs/heads/abl/phase1", made.Commit.Hash); err == nil || !strings.Contains(err.Error(), "refs/heads/abl") {
		t.Errorf("got %v, want an error that names the link", err)
	}
	names, err := os.ReadDir(outside)
	must(t, err)
	if len(names) > 0 {
		t.Errorf("files behind the link: got %v, want none", slices.Collect(slices.Values(names)))
	}
}
