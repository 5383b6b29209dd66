package git

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"abl/internal/state"

	"github.com/google/go-cmp/cmp"
)

// listing returns the mode and the text of each entry of a directory, or the target of a link.
func listing(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		text, rerr := os.ReadFile(path)
		switch {
		case info.IsDir():
			text = nil
		case info.Mode()&fs.ModeSymlink != 0:
			target, lerr := os.Readlink(path)
			text, err = []byte(target), lerr
		default:
			err = rerr
		}
		all[name] = info.Mode().String() + " " + string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// An export has the same files as git archive.
func TestExportToIsLikeGitArchive(t *testing.T) {
	r := open(t, t.TempDir())
	write(t, r.Dir(), map[string]string{".gitignore": "dist/\n"})
	write(t, r.Dir(), map[string]string{"lib/a.txt": "text"})
	write(t, r.Dir(), map[string]string{"dist/built.js": "ignored"})
	write(t, r.Dir(), map[string]string{"run.sh": "#!/bin/sh\n"})
	must(t, os.Chmod(filepath.Join(r.Dir(), "run.sh"), 0o755))
	must(t, os.Symlink("lib/a.txt", filepath.Join(r.Dir(), "link")))
	snap := snapshot(t, r, "one", "1")
	write(t, r.Dir(), map[string]string{"lib/a.txt": "changed since"})

	got := t.TempDir()
	must(t, r.ExportTo(t.Context(), got, snap.Commit.Hash, "", Owner{os.Getuid(), os.Getgid()}))
	want := t.TempDir()
	archive := exec.CommandContext(t.Context(), "sh", "-c", `git -C "$1" -c tar.umask=0022 archive "$2" | tar -x -C "$3"`, "sh", r.Dir(), snap.Commit.Hash, want)
	if out, err := archive.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if diff := cmp.Diff(listing(t, want), listing(t, got)); diff != "" {
		t.Errorf("export (-want by git archive, +got by ExportTo):\n%s", diff)
	}
	info, err := os.Stat(filepath.Join(got, "lib/a.txt"))
	if err != nil || !info.ModTime().Equal(snap.Commit.When.Truncate(time.Second)) {
		t.Errorf("modification time: got %v, %v, want the commit's %v", info.ModTime(), err, snap.Commit.When)
	}
}

// Files of an earlier export become links to it. Other files are as in an export without an earlier
// one.
func TestExportToLinksAnEarlierExport(t *testing.T) {
	r := open(t, t.TempDir())
	write(t, r.Dir(), map[string]string{"lib/same.txt": "same", "lib/other.txt": "one", "gone.txt": "gone", "run.sh": "#!/bin/sh\n"})
	must(t, os.Symlink("lib/same.txt", filepath.Join(r.Dir(), "link")))
	one := snapshot(t, r, "one", "1")
	write(t, r.Dir(), map[string]string{"lib/other.txt": "two", "new/file.txt": "new"})
	must(t, os.Remove(filepath.Join(r.Dir(), "gone.txt")))
	must(t, os.Chmod(filepath.Join(r.Dir(), "run.sh"), 0o755))
	two := snapshot(t, r, "two", "2")
	tree, err := r.TreeHash(one.Commit.Hash)
	must(t, err)

	mine, cache := Owner{os.Getuid(), os.Getgid()}, t.TempDir()
	export := func(name string, s Snap, earlier string) string {
		t.Helper()
		dir := filepath.Join(cache, name)
		must(t, os.Mkdir(dir, 0o755))
		must(t, r.ExportTo(t.Context(), dir, s.Commit.Hash, earlier, mine))
		return dir
	}
	first, fresh := export(tree, one, ""), export("fresh", two, "")
	for _, c := range []struct {
		name, earlier string
		links         bool
	}{
		{"linked", first, true},
		{"not-beside-it", filepath.Join(t.TempDir(), tree), false},
		{"not-a-tree", filepath.Join(cache, "fresh"), false},
		{"removed-meanwhile", filepath.Join(cache, strings.Repeat("1", 40)), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := export(c.name, two, c.earlier)
			if diff := cmp.Diff(listing(t, fresh), listing(t, got)); diff != "" {
				t.Errorf("export (-want without an earlier one, +got with it):\n%s", diff)
			}
			for _, name := range []string{"lib/same.txt", "lib/other.txt", "run.sh"} {
				was, err1 := os.Stat(filepath.Join(first, name))
				is, err2 := os.Stat(filepath.Join(got, name))
				must(t, errors.Join(err1, err2))
				if want := c.links && name == "lib/same.txt"; os.SameFile(was, is) != want {
					t.Errorf("%s is a link: got %v, want %v", name, !want, want)
				}
			}
		})
	}
}

// A snapshot reports each path that the commit does not contain, with the rule or the limit.
func TestAbsentPathsHaveReasons(t *testing.T) {
	r, err := Open(t.TempDir(), Options{Without: []string{"deploy/keys"}})
	must(t, err)
	write(t, r.Dir(), map[string]string{".gitignore": "# built\n\ndist/\n*.cfg\n!keep.cfg\n"})
	write(t, r.Dir(), map[string]string{"lib/.gitignore": "gen.py\n"})
	for _, name := range []string{"dist/a.js", "app.cfg", "keep.cfg", "lib/gen.py", "lib/core.py", "deploy/keys/a"} {
		write(t, r.Dir(), map[string]string{name: "x"})
	}
	write(t, r.Dir(), map[string]string{".git/info/exclude": "/notes.txt\n"})
	write(t, r.Dir(), map[string]string{"notes.txt": "x"})
	var found state.Found
	_, err = r.Snapshot(t.Context(), Message{Subject: "one", Keep: func(f state.Found) error { found = f; return nil }})
	must(t, err)
	var got []string
	for _, a := range found.Absent {
		got = append(got, a.Path+": "+a.What)
	}
	want := []string{
		"app.cfg: ignored by .gitignore:4", "deploy/keys/a: excluded from the clone (adopt.exclude)", "dist: ignored by .gitignore:3",
		"lib/gen.py: ignored by lib/.gitignore:1", "notes.txt: ignored by .git/info/exclude:1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("absent paths (-want +got):\n%s", diff)
	}
}

// The key of the work tree changes only with files that a commit would contain.
func TestWorkKey(t *testing.T) {
	r := open(t, t.TempDir())
	write(t, r.Dir(), map[string]string{".gitignore": "ignored\n"})
	write(t, r.Dir(), map[string]string{"a": "1"})
	key := func() string {
		t.Helper()
		k, err := r.WorkKey(t.Context())
		must(t, err)
		return k
	}
	was := key()
	snapshot(t, r, "one", "1")
	write(t, r.Dir(), map[string]string{"ignored": "x"})
	if got := key(); got != was {
		t.Errorf("got another key after a commit and an ignored file, want %s", was)
	}
	write(t, r.Dir(), map[string]string{"a": strings.Repeat("2", 2)})
	if key() == was {
		t.Errorf("key with another text: got %s again, want another key", was)
	}
}
