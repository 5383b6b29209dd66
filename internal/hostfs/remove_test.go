package hostfs

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// nest creates nested directories, also beyond the maximum path length.
func nest(t *testing.T, dir string, levels int) {
	t.Helper()
	at, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	for i := 0; err == nil && i < levels; i++ {
		if err = unix.Mkdirat(at, "d", 0o755); err != nil {
			break
		}
		var next int
		next, err = unix.Openat(at, "d", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		unix.Close(at)
		at = next
	}
	if err = errors.Join(err, unix.Close(at)); err != nil {
		t.Fatal(err)
	}
}

func TestRemove(t *testing.T) {
	dir := hostile(t)
	for _, name := range []string{"good.md", "link.md", "linkdir", "dangling.md", "fifo.md", "socket.md", "sparse.md", "sub", "none.md", "none/none.md"} {
		if err := Remove(dir, name); err != nil {
			t.Errorf("Remove(%q): got %v, want no error", name, err)
		}
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s after Remove: got a file, want none", name)
		}
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(dir), ".env")); err != nil {
		t.Errorf("target of the link: got %v, want a file", err)
	}
	for _, name := range []string{"indir/deep", "../.env", ".", "five.md/x"} {
		if err := Remove(dir, name); err == nil {
			t.Errorf("Remove(%q): got no error, want one", name)
		}
	}
}

// Remove works on a tree that is deeper than the limit of descriptors, with files, links and
// directories without permissions.
func TestRemoveHostileTree(t *testing.T) {
	dir := t.TempDir()
	top := filepath.Join(dir, "failed_specs.md")
	for i := range 3 {
		sub := filepath.Join(top, fmt.Sprint("s", i))
		if err := errors.Join(os.MkdirAll(filepath.Join(sub, "abl-moved-2"), 0o755), os.Symlink("/", filepath.Join(sub, "link"))); err != nil {
			t.Fatal(err)
		}
		nest(t, sub, 500)
	}
	for i := range 1200 {
		if err := os.WriteFile(filepath.Join(top, "s1", strconv.Itoa(i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"s2/d", "s2", "s0/abl-moved-2"} {
		if err := os.Chmod(filepath.Join(top, name), 0); err != nil {
			t.Fatal(err)
		}
	}
	few(t, 64)
	if err := Remove(dir, "failed_specs.md"); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("files after Remove: got %v, %v, want none", left, err)
	}
}

// os.RemoveAll and os.Root.RemoveAll fail at this depth.
func TestRemoveDeep(t *testing.T) {
	dir := t.TempDir()
	nest(t, dir, 5000)
	few(t, 64)
	if err := Remove(dir, "d"); err != nil {
		t.Error(err)
	}
}

// few limits the test to n file descriptors.
func few(t *testing.T, n uint64) {
	t.Helper()
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: n, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &was) })
}

// While another goroutine replaces the file, Open returns only regular files and never blocks.
func TestOpenWhileReplaced(t *testing.T) {
	dir := hostile(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			for _, kind := range []string{"fifo.md", "fifo.md", "fifo.md", "link.md", "six.md", "five.md"} {
				select {
				case <-stop:
					return
				default:
				}
				_ = os.Remove(at("next")) // which stays where both names are one file already
				if os.Link(at(kind), at("next")) == nil {
					_ = os.Rename(at("next"), at("empty.md"))
				}
			}
		}
	}()
	opened, caught := 0, 0
	for range 100_000 {
		f, err := Open(dir, "empty.md")
		if errors.Is(err, ErrChanged) {
			caught++
		}
		if caught > 20 && opened > 20 {
			break
		}
		if err != nil {
			continue
		}
		opened++
		if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
			t.Errorf("opened file: got %v, %v, want a regular file", fi, err)
		}
		f.Close()
	}
	close(stop)
	<-done
	if opened == 0 || caught == 0 {
		t.Errorf("files opened and refused: got %d and %d, want some of each", opened, caught)
	}
}

func TestOpen(t *testing.T) {
	dir := hostile(t)
	late, err := openAt(unix.AT_FDCWD, filepath.Join(dir, "fifo.md"), reading) // as when it takes a file's place after the look
	if err != nil {
		t.Fatal(err)
	}
	late.Close()
	for name, kind := range map[string]error{
		"good.md": nil, "sub/deep/r.md": nil, "sparse.md": nil, "link.md": ErrNotRegular, "inlink.md": ErrNotRegular, "fifo.md": ErrNotRegular,
		"socket.md": ErrNotRegular, "sub": ErrNotRegular, "linkdir/.env": ErrNotRegular, "none.md": ErrAbsent,
	} {
		f, err := Open(dir, name)
		if !errors.Is(err, kind) || (err == nil) != (kind == nil) {
			t.Errorf("%s: got %v, want %v", name, err, kind)
		}
		if err == nil {
			f.Close()
		}
	}
}

// A user other than root removes directories whose permissions a role removed.
func TestRemoveAsAnother(t *testing.T) {
	if os.Geteuid() != 0 {
		return // TestRemoveHostileTree is that already
	}
	const nobody = 65534
	dir, err := os.MkdirTemp("", "safefile-nobody-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	program, err := os.ReadFile(os.Args[0])
	err = errors.Join(err, os.WriteFile(filepath.Join(dir, "test"), program, 0o755), os.Chown(dir, nobody, nobody))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(dir, "test"), "-test.run=^TestRemoveHostileTree$")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "TMPDIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("test as nobody: got %v, want no error\n%s", err, out)
	}
}
