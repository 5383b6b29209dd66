package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestNewRepository(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	if _, ok, err := r.Head(); ok || err != nil {
		t.Errorf("head of a new one: %v %v", ok, err)
	}
	if log, err := r.Log(5); len(log) > 0 || err != nil {
		t.Errorf("log of a new one: %v %v", log, err)
	}
	s := snapshot(t, r, "nothing yet", "1")
	if s.Changed != 0 || s.Existing || s.Commit.Tree != "4b825dc642cb6eb9a060e54bf8d69288fbee4904" {
		t.Errorf("%+v", s)
	}
	head, ok, err := open(t, dir).Head()
	if !ok || err != nil || head.Hash != s.Commit.Hash || head.Trailers[CallTrailer] != "1" {
		t.Errorf("%+v %v %v", head, ok, err)
	}
	if !head.When.Equal(s.Commit.When.Truncate(time.Second)) {
		t.Errorf("when %v, want %v", head.When, s.Commit.When)
	}
	sound(t, dir)
	clean(t, dir)
}

func TestHalfMadeRepositoryIsFinished(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{".git/objects/pack/": "", ".git/config": newConfig})
	snapshot(t, open(t, dir), "s", "1")
	sound(t, dir)
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"file": "", "link": "->."})
	for _, name := range []string{"file", "link", "none"} {
		if _, err := Open(filepath.Join(dir, name), Options{}); err == nil {
			t.Errorf("%s is opened", name)
		}
	}
}

func TestSnapshotTwiceIsOnce(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	snapshot(t, r, "first", "c1.1")
	write(t, dir, map[string]string{"a": "1", "b": "2"})
	want := snapshot(t, r, "second", "c2.1")
	write(t, dir, map[string]string{"a": "changed"})
	got := snapshot(t, r, "second", "c2.1")
	if !got.Existing || got.Commit.Hash != want.Commit.Hash || got.Changed != 2 || want.Changed != 2 {
		t.Errorf("%+v, then %+v", want, got)
	}
	next := snapshot(t, r, "second", "c2.2")
	if next.Existing || next.Changed != 1 {
		t.Errorf("%+v", next)
	}
	log, err := r.Log(2)
	if err != nil || len(log) != 2 || log[0].Hash != next.Commit.Hash || log[1].Hash != want.Commit.Hash {
		t.Errorf("%v %v", log, err)
	}
}

func TestSnapshotRefusesMessage(t *testing.T) {
	r := open(t, t.TempDir())
	if _, err := r.Snapshot(t.Context(), message("two\nlines", "1")); err == nil {
		t.Error("a subject of two lines is taken")
	}
}

func TestDiffers(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	write(t, dir, map[string]string{"a": "1", "b/c": "2", "d": "3", "e": "4", ".gitignore": "*.o\n"})
	snapshot(t, r, "s", "1")
	check := func(want ...string) {
		t.Helper()
		got, err := r.Differs(t.Context())
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("%q %v, want %q", got, err, want)
		}
	}
	check()
	must(t, os.WriteFile(filepath.Join(dir, "a"), []byte("9"), 0o644))
	must(t, os.Remove(filepath.Join(dir, "b/c")))
	must(t, os.Chmod(filepath.Join(dir, "d"), 0o755))
	write(t, dir, map[string]string{"new": "n", "x.o": "ignored"})
	check("a", "b/c", "d", "new")
	git(t, dir, "add", "-A")  // staged is not committed,
	git(t, dir, "write-tree") // even when git has computed its tree
	check("a", "b/c", "d", "new")
	for i := range 200 {
		write(t, dir, map[string]string{fmt.Sprintf("many%03d", i): ""})
	}
	if got, _ := r.Differs(t.Context()); len(got) != maxDiffers {
		t.Errorf("%d paths named", len(got))
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	write(t, dir, map[string]string{"a.o": "tracked", "a-b": "", "a/x": ""})
	snapshot(t, r, "s", "1")
	write(t, dir, map[string]string{".gitignore": "*.o\n/out\n", "b.o": "", "out/x": "", "new": ""})
	must(t, os.Remove(filepath.Join(dir, "a-b")))
	all := []string{".gitignore", "a.o", "a/x", "new"}
	for _, max := range []int{0, 2, 4, 100} {
		paths, total, err := r.Files(t.Context(), max)
		if err != nil || total != 4 || !cmp.Equal(paths, all[:min(max, 4)]) {
			t.Errorf("max %d: %q %d %v", max, paths, total, err)
		}
	}
}

func TestTag(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	one := snapshot(t, r, "one", "1").Commit.Hash
	two := snapshot(t, r, "two", "2").Commit.Hash
	three := snapshot(t, r, "three", "3").Commit.Hash
	check := func(name, want string) {
		t.Helper()
		if got, ok, err := r.TagCommit(name); got != want || ok != (want != "") || err != nil {
			t.Errorf("tag %s: %q %v %v, want %q", name, got, ok, err, want)
		}
	}
	tag := func(commit string) { t.Helper(); must(t, r.Tag(t.Context(), "phase1/passed", commit)) }
	check("phase1/passed", "")
	tag(one)
	tag(one)
	check("phase1/passed", one)
	check("phase1/passed.1", "")
	tag(two)
	git(t, dir, "pack-refs", "--all")
	tag(three)
	tag(three)
	check("phase1/passed", three)
	check("phase1/passed.1", one)
	check("phase1/passed.2", two)
	check("phase1/passed.3", "")
	tag(one)
	check("phase1/passed.3", three)
	git(t, dir, "tag", "-a", "-m", "x", "annotated", two)
	must(t, r.Tag(t.Context(), "annotated", two))
	check("annotated", two)
	sound(t, dir)
	for _, bad := range [][2]string{{"../x", one}, {"x", "12"}, {"x", strings.Repeat("1", 40)}, {"x.lock", one}} {
		if err := r.Tag(t.Context(), bad[0], bad[1]); err == nil {
			t.Errorf("tag %q at %q is made", bad[0], bad[1])
		}
	}
}

// TestTagInterrupted: a kill after the old tag was kept and before the new one
// was made keeps it once.
func TestTagInterrupted(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	one := snapshot(t, r, "one", "1").Commit.Hash
	two := snapshot(t, r, "two", "2").Commit.Hash
	must(t, r.Tag(t.Context(), "p", one))
	must(t, r.Tag(t.Context(), "p.1", one))
	must(t, r.Tag(t.Context(), "p", two))
	if got := git(t, dir, "tag"); got != "p\np.1" {
		t.Errorf("tags %q", got)
	}
}

func TestFingerprint(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	print := func() string {
		t.Helper()
		p, err := r.Fingerprint()
		must(t, err)
		return p
	}
	last := print()
	write(t, dir, map[string]string{"a": "1"})
	snapshot(t, r, "s", "1")
	if print() != last {
		t.Error("a snapshot changes the fingerprint")
	}
	for _, c := range []struct { // in this order: some build on the one before
		name   string
		change func()
	}{
		{"config", func() { git(t, dir, "config", "alias.x", "!sh") }},
		{"hook", func() { write(t, dir, map[string]string{".git/hooks/pre-commit": "#!/bin/sh\n"}) }},
		{"mode", func() { must(t, os.Chmod(filepath.Join(dir, ".git/hooks/pre-commit"), 0o755)) }},
		{"link", func() { write(t, dir, map[string]string{".git/hooks/post-merge": "->/bin/true"}) }},
		{"branch", func() { git(t, dir, "checkout", "-q", "-b", "other") }},
		{"alternates", func() { write(t, dir, map[string]string{".git/objects/info/alternates": "/x"}) }},
	} {
		c.change()
		now := print()
		if now == last {
			t.Errorf("%s: the fingerprint stays", c.name)
		}
		last = now
	}
}

func TestShallowLog(t *testing.T) {
	source, dir := t.TempDir(), filepath.Join(t.TempDir(), "clone")
	r := open(t, source)
	for i := range 5 {
		snapshot(t, r, "s", fmt.Sprint(i))
	}
	git(t, source, "clone", "-q", "--depth", "2", "file://"+source, dir)
	log, err := open(t, dir).Log(10)
	if err != nil || len(log) != 2 {
		t.Errorf("%d commits, %v", len(log), err)
	}
}

func TestLockedByGit(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	for _, name := range []string{"index.lock", "HEAD.lock", "refs/heads/main.lock"} {
		path := filepath.Join(dir, ".git", name)
		must(t, os.WriteFile(path, nil, 0o644))
		_, err := r.Snapshot(t.Context(), message("s", "1"))
		if !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
		must(t, os.Remove(path))
	}
	snapshot(t, r, "s", "1")
	sound(t, dir)
}
