package gitdir

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	one = "1111111111111111111111111111111111111111"
	two = "2222222222222222222222222222222222222222"
)

func repository(t *testing.T) Dir {
	t.Helper()
	dir := t.TempDir()
	for _, folder := range []string{"refs/heads", "refs/tags"} {
		must(t, os.MkdirAll(filepath.Join(dir, folder), 0o755))
	}
	info, err := os.Stat(dir)
	must(t, err)
	d := At(dir, info)
	d.Wait = 30 * time.Millisecond
	must(t, d.Replace("HEAD", []byte("ref: refs/heads/main\n")))
	return d
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// empty checks that no temporary file is left.
func empty(t *testing.T, d Dir) {
	t.Helper()
	if left, _ := filepath.Glob(d.Join(tempPrefix + "*")); len(left) > 0 {
		t.Errorf("temporary files: got %q, want none", left)
	}
}

func TestLock(t *testing.T) {
	d := repository(t)
	unlock, err := d.Lock(t.Context(), "index")
	must(t, err)
	_, err = d.Lock(t.Context(), "index")
	if !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), "index.lock") {
		t.Errorf("Lock of a locked index: got %v, want ErrForeign that names index.lock", err)
	}
	unlock()
	unlock, err = d.Lock(t.Context(), "index")
	must(t, err)
	unlock()
	empty(t, d)
}

func TestLockHeldByGit(t *testing.T) {
	d := repository(t)
	must(t, os.WriteFile(d.Join("index.lock"), nil, 0o644))
	if _, err := d.Lock(t.Context(), "index"); !errors.Is(err, ErrForeign) {
		t.Errorf("Lock with git's lock: got %v, want ErrForeign", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Lock(ctx, "index"); !errors.Is(err, context.Canceled) {
		t.Errorf("Lock with a cancelled context: got %v, want %v", err, context.Canceled)
	}
	if _, err := os.Stat(d.Join("index.lock")); err != nil {
		t.Errorf("git's lock file: got %v, want a file", err)
	}
}

// The lock file of a killed abl has abl's mark and no flock.
func TestLockOfTheDead(t *testing.T) {
	d := repository(t)
	must(t, os.WriteFile(d.Join("index.lock"), []byte(mark), 0o600))
	unlock, err := d.Lock(t.Context(), "index")
	must(t, err)
	unlock()
	empty(t, d)
}

func TestMove(t *testing.T) {
	d := repository(t)
	must(t, d.Move(t.Context(), "refs/heads/a/b", "", one))
	if err := d.Move(t.Context(), "refs/heads/a/b", two, one); !errors.Is(err, ErrForeign) {
		t.Errorf("Move of a ref with another commit: got %v, want ErrForeign", err)
	}
	if err := d.Move(t.Context(), "refs/heads/a/b", "", two); !errors.Is(err, ErrForeign) {
		t.Errorf("Move to create a ref that exists: got %v, want ErrForeign", err)
	}
	if err := d.Move(t.Context(), "refs/heads/a/b", one, two+"x"); err == nil {
		t.Error("Move to an invalid hash: got no error, want one")
	}
	must(t, d.Move(t.Context(), "refs/heads/a/b", one, two))
	if got, err := d.Ref("refs/heads/a/b"); got != two || err != nil {
		t.Errorf("Ref after Move: got %q, %v, want %q", got, err, two)
	}
	empty(t, d)
}

// git cannot have a ref below another ref.
func TestMoveBesideAnother(t *testing.T) {
	d := repository(t)
	must(t, d.Replace("packed-refs", []byte(one+" refs/heads/abl\n"+one+" refs/heads/x/y/z\n")))
	for name, refused := range map[string]bool{"refs/heads/abl/phase1": true, "refs/heads/x/y": true, "refs/heads/ab/l": false, "refs/heads/x/z": false} {
		if err := d.Move(t.Context(), name, "", two); errors.Is(err, ErrForeign) != refused {
			t.Errorf("%s: got %v, want that it is refused: %v", name, err, refused)
		}
	}
}

func TestRef(t *testing.T) {
	d := repository(t)
	must(t, d.Replace("packed-refs", []byte("# pack-refs with: peeled\n"+one+" refs/heads/main\n^"+two+"\n"+two+" refs/heads/x/y\n")))
	must(t, d.Replace("refs/heads/loose", []byte(two+"\n")))
	must(t, d.Replace("refs/heads/empty", nil))
	must(t, d.Replace("refs/heads/zero", make([]byte, 41)))
	must(t, d.Replace("refs/heads/sym", []byte("ref: refs/heads/main\n")))
	for name, want := range map[string]string{
		"refs/heads/main": one, "refs/heads/x/y": two, "refs/heads/loose": two, "refs/heads/none": "", "refs/heads/x": "",
		"refs/heads/loose/below": "", "refs/heads/sym": one,
	} {
		if got, err := d.Ref(name); got != want || err != nil {
			t.Errorf("Ref(%q): got %q, %v, want %q", name, got, err, want)
		}
	}
	must(t, d.Replace("refs/heads/out", []byte("ref: refs/heads/../../config\n")))
	must(t, d.Replace("refs/heads/tag", []byte("ref: refs/tags/v1\n")))
	for _, name := range []string{"refs/heads/empty", "refs/heads/zero", "refs/heads/out", "refs/heads/tag"} {
		if got, err := d.Ref(name); !errors.Is(err, ErrForeign) {
			t.Errorf("Ref(%q): got %q, %v, want ErrForeign", name, got, err)
		}
	}
}

func TestHead(t *testing.T) {
	d := repository(t)
	for head, want := range map[string]string{
		"ref: refs/heads/main\n": "main", "ref: refs/heads/feature/x": "feature/x",
		one + "\n": one, "": "", "ref: refs/heads/../../x\n": "", "ref: refs/tags/x\n": "", "ref: refs/heads/a\nb\n": "",
	} {
		must(t, d.Replace("HEAD", []byte(head)))
		branch, commit, err := d.Head()
		if got := branch + commit; got != want || (want == "") != errors.Is(err, ErrForeign) {
			t.Errorf("Head of %q: got %q, %v, want %q, and ErrForeign if it is empty", head, got, err, want)
		}
	}
	must(t, errors.Join(os.Remove(d.Join("HEAD")), syscall.Mkfifo(d.Join("HEAD"), 0o600)))
	if _, _, err := d.Head(); err == nil {
		t.Error("Head of a FIFO: got no error, want one")
	}
}

func TestSweep(t *testing.T) {
	d := repository(t)
	must(t, d.Mkdir("objects/pack"))
	must(t, d.Replace(tempPrefix+"old", nil))
	must(t, d.Replace("objects/pack/"+tempPrefix+"old", nil))
	folder, err := d.TempDir()
	must(t, errors.Join(err, os.WriteFile(filepath.Join(folder, "file"), nil, 0o600)))
	d.Sweep(time.Now())
	if _, err := os.Stat(d.Join(tempPrefix + "old")); err != nil {
		t.Errorf("new temporary file after Sweep: got %v, want a file", err)
	}
	d.Sweep(time.Now().Add(25 * time.Hour))
	empty(t, d)
	if left, _ := filepath.Glob(d.Join("objects/pack/*")); len(left) > 0 {
		t.Errorf("files in objects/pack: got %q, want none", left)
	}
}

// A failed write leaves neither the file nor a temporary file.
func TestFailedWrite(t *testing.T) {
	d := repository(t)
	must(t, d.Mkdir("objects/pack"))
	full := errors.New("disk full")
	for name, write := range map[string]func() error{
		"file": func() error { return d.fill(".", "new", 0o644, func(io.Writer) error { return full }) },
		"pack": func() error {
			return d.Pack(func(w io.Writer) error { _, err := io.WriteString(w, "PACK"); return errors.Join(err, full) })
		},
		"no-pack":   func() error { return d.Pack(func(w io.Writer) error { _, err := io.WriteString(w, "x"); return err }) },
		"no-folder": func() error { return d.Replace("none/new", nil) },
	} {
		t.Run(name, func(t *testing.T) {
			if write() == nil {
				t.Error("failed write: got no error, want one")
			}
			if left, _ := filepath.Glob(d.Join("objects/pack/*")); len(left) > 0 {
				t.Errorf("got packs %q, want no pack", left)
			}
			if _, err := os.Stat(d.Join("new")); err == nil {
				t.Error("file of a failed write: got one, want none")
			}
			empty(t, d)
		})
	}
}

// git accepts every name that ValidRef accepts.
func FuzzValidRef(f *testing.F) {
	for _, s := range []string{"main", "a/b", "phase1/passed.1", "a..b", "a.lock", "-x", "@", "a@{", "a/.b", "a//b", "ü", "a b", "a/", "\xff", "a.lock/b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !ValidRef(s) {
			return
		}
		if strings.Contains(s, "\x00") {
			t.Fatalf("got %q, want no NUL", s)
		}
		if err := exec.Command("git", "check-ref-format", "--branch", s).Run(); err != nil {
			t.Errorf("git check-ref-format of %q: got %v, want no error", s, err)
		}
	})
}
