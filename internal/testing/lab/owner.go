package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Walk calls see for everything below dir, with its slash-separated path. It does not follow
// links and skips files that disappear.
func Walk(t testing.TB, dir string, see func(path string, info fs.FileInfo) error) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, syscall.ENAMETOOLONG) {
			return nil // nested folders beyond the maximum path length
		}
		if err != nil {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENAMETOOLONG) {
			return nil
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return see(rel, info)
	})
	if err != nil {
		t.Errorf("cannot read all of %s: %v", dir, err)
	}
}

// OwnerOf returns the owner of a file as UID:GID.
func OwnerOf(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "?"
	}
	return fmt.Sprintf("%d:%d", st.Uid, st.Gid)
}

// GiveTo changes the owner of everything in dir and makes the folders above dir accessible for all
// users. Only root may call it.
func GiveTo(t testing.TB, dir string, uid, gid int) {
	t.Helper()
	Walk(t, dir, func(path string, _ fs.FileInfo) error { return os.Lchown(filepath.Join(dir, path), uid, gid) })
	for up := filepath.Dir(dir); up != os.TempDir() && up != "/"; up = filepath.Dir(up) {
		if err := os.Chmod(up, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// CopyBin copies abl's programs to dir, where every user can run them.
func CopyBin(t testing.TB, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"abl", "abl-cmd", "abl-gateway"} {
		data, err := os.ReadFile(Bin(t, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
