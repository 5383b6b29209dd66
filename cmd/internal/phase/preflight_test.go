package phase

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"abl/internal/config"
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

// Flags that override settings are a part of their own, so that a later run without them is as before.
func TestAskedOf(t *testing.T) {
	s := adopted(t)
	var err error
	s.Conf, err = config.Load(s.Paths.Root, os.LookupEnv, nil)
	must(t, err)
	plain := askedOf(s.Folder, false).Settings
	if plain == "" || strings.Contains(plain, "+") {
		t.Fatalf("without flags: got %q, want one hash", plain)
	}
	for name, c := range map[string]struct {
		flags func(*config.Config)
		adds  bool
	}{
		"remote":     {func(c *config.Config) { c.Remote.Name = "other" }, false},
		"budget":     {func(c *config.Config) { c.Budget.Phase.Tokens = 7 }, false},
		"iterations": {func(c *config.Config) { c.Loop.MaxVerifierIterations = 9 }, true},
	} {
		t.Run(name, func(t *testing.T) {
			conf := *s.Conf
			c.flags(&conf.Config)
			f := s.Folder
			f.Conf = &conf
			got := askedOf(f, false).Settings
			if added := strings.HasPrefix(got, plain+"+"); added != c.adds || !added && got != plain {
				t.Errorf("got %q, want %q, and flags: %t", got, plain, c.adds)
			}
		})
	}
}
