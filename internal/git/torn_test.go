package git

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Restore restores committed files that a power failure damaged, and keeps all other changes.
func TestRestore(t *testing.T) {
	was := strings.Repeat("a line of it\n", 1000)
	at := func(dir string) string { return filepath.Join(dir, "sub/f.txt") }
	writes := func(text string) func(string) error {
		return func(dir string) error { return os.WriteFile(at(dir), []byte(text), 0o644) }
	}
	for name, c := range map[string]struct {
		do       func(dir string) error
		restored bool
	}{
		"missing":           {func(dir string) error { return os.Remove(at(dir)) }, true},
		"its folder too":    {func(dir string) error { return os.RemoveAll(filepath.Dir(at(dir))) }, true},
		"empty":             {writes(""), true},
		"cut":               {writes(was[:5000]), true},
		"zeros":             {writes(strings.Repeat("\x00", len(was))), true},
		"less zeros":        {writes(strings.Repeat("\x00", 4096)), true},
		"more zeros":        {writes(strings.Repeat("\x00", len(was)+1)), false},
		"a line more":       {writes(was + "mine\n"), false},
		"another beginning": {writes("mine" + was[4:100]), false},
		"zeros at its end":  {writes(was[:5000] + strings.Repeat("\x00", len(was)-5000)), false},
		"another mode":      {func(dir string) error { return os.Chmod(at(dir), 0o755) }, false},
		"a link":            {func(dir string) error { _ = os.Remove(at(dir)); return os.Symlink("other", at(dir)) }, false},
		"a folder":          {func(dir string) error { _ = os.Remove(at(dir)); return os.Mkdir(at(dir), 0o755) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir, aside := t.TempDir(), t.TempDir()
			write(t, dir, map[string]string{"sub/f.txt": was, "other": "other"})
			snapshot(t, open(t, dir), "s", "1")
			must(t, c.do(dir))
			left, _ := os.ReadFile(at(dir))
			var want []string
			if c.restored {
				want = []string{"sub/f.txt"}
			}
			got, err := open(t, dir).Restore(t.Context(), aside, os.Getuid(), os.Getgid())
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Fatalf("restored (-want +got): %s, %v", diff, err)
			}
			if !c.restored {
				return
			}
			if now, err := os.ReadFile(at(dir)); err != nil || string(now) != was {
				t.Errorf("restored file: got %d bytes, %v, want the %d committed", len(now), err, len(was))
			}
			if kept, _ := os.ReadFile(filepath.Join(aside, "sub/f.txt")); string(kept) != string(left) {
				t.Errorf("damaged file put aside: got %d bytes, want %d", len(kept), len(left))
			}
			clean(t, dir)
		})
	}
}
