package git

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestExport(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	write(t, dir, map[string]string{"run.sh": "one", "a/b/c": "deep", "link": "->a/b/c", "odd\nname": "x"})
	if err := os.Chmod(filepath.Join(dir, "run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	first := snapshot(t, r, "s", "1")
	write(t, dir, map[string]string{"run.sh": "two", "later": ""})
	snapshot(t, r, "s", "2")

	const want = "t/ 755; t/a/ 755; t/a/b/ 755; t/a/b/c 644 deep; t/link -> a/b/c; t/odd\nname 644 x; t/run.sh 755 one; "
	var again [2]string
	for i := range again {
		var b bytes.Buffer
		if err := r.Export(t.Context(), &b, first.Commit.Hash, "t", Owner{7, 8}); err != nil {
			t.Fatal(err)
		}
		again[i] = b.String()
	}
	if again[0] != again[1] {
		t.Error("two exports of a commit differ")
	}
	if got := list(t, again[0]); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	for _, commit := range []string{"", "HEAD", strings.Repeat("0", 40), first.Commit.Tree} {
		if err := r.Export(t.Context(), io.Discard, commit, "t", Owner{}); err == nil {
			t.Errorf("%q is exported", commit)
		}
	}
}

func list(t *testing.T, data string) string {
	t.Helper()
	var b strings.Builder
	for in := tar.NewReader(strings.NewReader(data)); ; {
		h, err := in.Next()
		if err == io.EOF {
			return b.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(in)
		if h.Uid != 7 || h.Gid != 8 {
			t.Errorf("%s belongs to %d:%d", h.Name, h.Uid, h.Gid)
		}
		switch h.Typeflag {
		case tar.TypeSymlink:
			fmt.Fprintf(&b, "%s -> %s; ", h.Name, h.Linkname)
		case tar.TypeDir:
			fmt.Fprintf(&b, "%s %o; ", h.Name, h.Mode)
		default:
			fmt.Fprintf(&b, "%s %o %s; ", h.Name, h.Mode, text)
		}
	}
}
