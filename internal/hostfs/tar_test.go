package hostfs

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestTar(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a/b.txt": "b", ".git/HEAD": "ref", "a/.git/x": "nested"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := Tar(&out, "top", dir, ".git"); err != nil {
		t.Fatal(err)
	}
	want := "top/ d\ntop/a/ d\ntop/a/.git/ d\ntop/a/.git/x nested\ntop/a/b.txt b\ntop/link → /etc/passwd\n"
	if got := listTar(t, &out); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func listTar(t *testing.T, r io.Reader) (all string) {
	t.Helper()
	in := tar.NewReader(r)
	for {
		h, err := in.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		switch h.Typeflag {
		case tar.TypeDir:
			all += h.Name + " d\n"
		case tar.TypeSymlink:
			all += fmt.Sprintf("%s → %s\n", h.Name, h.Linkname)
		default:
			data, err := io.ReadAll(in)
			if err != nil {
				t.Fatal(err)
			}
			all += fmt.Sprintf("%s %s\n", h.Name, data)
		}
	}
}
