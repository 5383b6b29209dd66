package hostfs

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// idOf returns the owner of a path, of the link itself if it is one.
func idOf(t *testing.T, path string) [2]uint32 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		t.Fatal(err)
	}
	return [2]uint32{st.Uid, st.Gid}
}

func TestHandOver(t *testing.T) {
	project, outside := t.TempDir(), filepath.Join(t.TempDir(), "root's")
	at := func(path string) string { return filepath.Join(project, path) }
	for _, dir := range []string{".abl/logs", "src/.git/objects", "src/lib"} {
		if err := os.MkdirAll(at(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{at(".abl/logs/tokens.csv"), at("src/.git/HEAD"), at("src/lib/a"), at(".abl/theirs"), outside} {
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{at(".abl/link"): outside, at(".abl/dirlink"): filepath.Dir(outside)} {
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
	hard := os.Link(outside, at(".abl/hard")) == nil
	me := [2]uint32{uint32(os.Geteuid()), uint32(os.Getegid())}
	person, third := me, me
	if os.Geteuid() == 0 {
		person, third = [2]uint32{4711, 4712}, [2]uint32{4713, 4714}
		if err := os.Chown(project, 4711, 4712); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(at(".abl/theirs"), 4713, 4714); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // doing it twice is doing it once
		if err := ChownToUser(project, ".abl", "src/.git", "missing", "missing/.git"); err != nil {
			t.Fatal(err)
		}
		if err := MkdirAll(project, "new/src"); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string][2]uint32{
		".abl": person, ".abl/logs": person, ".abl/logs/tokens.csv": person, ".abl/link": person, ".abl/dirlink": person,
		"src/.git": person, "src/.git/HEAD": person, "src/.git/objects": person, "new": person, "new/src": person,
		".abl/theirs": third, "src": me, "src/lib/a": me,
	}
	if hard {
		want[".abl/hard"] = me
	}
	for path, id := range want {
		if got := idOf(t, at(path)); got != id {
			t.Errorf("owner of %s: got %v, want %v", path, got, id)
		}
	}
	for _, path := range []string{outside, filepath.Dir(outside)} {
		if got := idOf(t, path); got != me {
			t.Errorf("owner of %s behind a link: got %v, want %v", path, got, me)
		}
	}
}

func TestRootKeepsItsOwnProject(t *testing.T) {
	project := t.TempDir()
	if err := ChownToUser(project, "."); err != nil {
		t.Fatal(err)
	}
	if got, want := idOf(t, project), [2]uint32{uint32(os.Geteuid()), uint32(os.Getegid())}; got != want {
		t.Errorf("owner of the project: got %v, want %v", got, want)
	}
}
