package phase

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"abl/internal/state"
)

// A run that another abl overtook before it took the lock looks at the state again.
func TestUnchanged(t *testing.T) {
	root, err := state.Real(t.TempDir())
	must(t, err)
	p := state.NewProject(root, "src", ".abl/tests")
	must(t, os.MkdirAll(filepath.Dir(p.State()), 0o755))
	none, _ := os.Stat(p.State())
	must(t, state.Save(p.State(), state.New(root)))
	first, err := os.Stat(p.State())
	must(t, err)
	same, err := os.Stat(p.State())
	must(t, err)
	must(t, state.Save(p.State(), state.New(root)))
	must(t, os.Chtimes(p.State(), time.Time{}, first.ModTime()))
	second, err := os.Stat(p.State())
	must(t, err)
	must(t, os.Chtimes(p.State(), time.Time{}, second.ModTime().Add(time.Second)))
	third, err := os.Stat(p.State())
	must(t, err)
	for _, c := range []struct {
		name    string
		was, is os.FileInfo
		want    bool
	}{
		{"never saved", none, none, true},
		{"the same", first, same, true},
		{"saved since", none, first, false},
		{"saved again at the same time", first, second, false},
		{"saved again with the same inode", second, third, false},
		{"removed", second, none, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := unchanged(c.was, c.is); got != c.want {
				t.Errorf("got %t, want %t", got, c.want)
			}
		})
	}
}
