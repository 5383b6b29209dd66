package git

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTracks(t *testing.T) {
	top := t.TempDir()
	project := filepath.Join(top, "team", "shop")
	must(t, os.MkdirAll(filepath.Join(project, "src"), 0o755))
	tracks := func(want bool) {
		t.Helper()
		if got, err := Tracks(project, "src"); err != nil || got != want {
			t.Errorf("tracked: %v, %v, want %v", got, err, want)
		}
	}
	tracks(false) // no repository at all
	git(t, top, "init", "-q")
	tracks(false) // one without an index
	must(t, os.WriteFile(filepath.Join(project, "srcs.txt"), nil, 0o644))
	git(t, top, "add", "-A")
	tracks(false)
	git(t, top, "update-index", "--add", "--cacheinfo", "160000,"+"1111111111111111111111111111111111111111"+",lib")
	must(t, os.WriteFile(filepath.Join(project, "src", "a.js"), nil, 0o644))
	git(t, top, "add", "-A", "--", "team")
	tracks(true) // beside a submodule
	must(t, os.WriteFile(filepath.Join(top, ".git", "index"), []byte("DIRC?"), 0o644))
	if _, err := Tracks(project, "src"); err == nil {
		t.Error("a damaged index was read")
	}
	must(t, os.RemoveAll(filepath.Join(top, ".git")))
	elsewhere := t.TempDir()
	git(t, elsewhere, "init", "-q")
	must(t, os.Symlink(filepath.Join(elsewhere, ".git"), filepath.Join(top, ".git")))
	tracks(false) // through a link
	must(t, os.Remove(filepath.Join(top, ".git")))
	must(t, os.WriteFile(filepath.Join(top, ".git"), []byte("gitdir: ../elsewhere\n"), 0o644))
	if _, err := Tracks(project, "src"); err == nil {
		t.Error("a worktree's index was found where it is not")
	}
}
