package boundary

import (
	"os"
	"path/filepath"
	"testing"

	"abl/internal/testing/rolestest"
	"abl/roles"
)

// abl replaces a link in a record, which a repository may contain, and never writes through it.
func TestInputFollowsNoLink(t *testing.T) {
	rec, outside := roles.Record{Dir: t.TempDir()}, filepath.Join(t.TempDir(), "outside")
	rolestest.Must(t, os.WriteFile(outside, []byte("kept"), 0o600))
	for name, create := range map[string]func(path string) error{
		"output":   func(path string) error { return (&Containers{}).CreateFiles(path) },
		"readable": func(path string) error { return WriteInput(rec, map[string][]byte{"x": nil}, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(rec.Dir, name)
			for _, at := range []string{path, path + ".new", rec.In()} {
				rolestest.Must(t, os.RemoveAll(at))
				rolestest.Must(t, os.Symlink(outside, at))
			}
			rolestest.Must(t, create(path))
			if got, err := os.ReadFile(outside); string(got) != "kept" || err != nil {
				t.Errorf("file behind the link: got %q, error %v, want %q", got, err, "kept")
			}
		})
	}
}
