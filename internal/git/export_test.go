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
	owner := Owner{os.Getuid(), os.Getgid()}
	if owner.UID == 0 {
		owner = Owner{7, 8}
	}
	var archive bytes.Buffer
	must(t, r.Export(t.Context(), &archive, first.Commit.Hash, "t", owner))
	if got := list(t, archive.String(), owner); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	for _, commit := range []string{"", "HEAD", strings.Repeat("0", 40), first.Commit.Tree} {
		if err := r.Export(t.Context(), io.Discard, commit, "t", Owner{}); err == nil {
			t.Errorf("Export(%q): got no error, want one", commit)
		}
	}
}

// list describes the entries of a tar archive, which must belong to owner.
func list(t *testing.T, data string, owner Owner) string {
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
		if got := (Owner{h.Uid, h.Gid}); got != owner {
			t.Errorf("owner of %s: got %v, want %v", h.Name, got, owner)
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
