package git

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"abl/internal/state"

	"github.com/google/go-cmp/cmp"
)

func TestNewRepository(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	if _, ok, err := r.Head(); ok || err != nil {
		t.Errorf("Head of a new repository: got %t, %v, want no commit", ok, err)
	}
	s := snapshot(t, r, "nothing yet", "1")
	if s.Changed != 0 || s.Existing || s.Commit.Tree != "4b825dc642cb6eb9a060e54bf8d69288fbee4904" {
		t.Errorf("got %+v, want a first commit of the empty tree", s)
	}
	head, ok, err := open(t, dir).Head()
	if !ok || err != nil || head.Hash != s.Commit.Hash || head.Call != "1" {
		t.Errorf("Head: got %+v, %t, %v, want %s of call 1", head, ok, err, s.Commit.Hash)
	}
	if !head.When.Equal(s.Commit.When.Truncate(time.Second)) {
		t.Errorf("time of the commit: got %v, want %v", head.When, s.Commit.When.Truncate(time.Second))
	}
	sound(t, dir)
	clean(t, dir)
}

func TestOpenFinishesHalfMadeRepository(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{".git/objects/pack/": "", ".git/config": newConfig})
	snapshot(t, open(t, dir), "s", "1")
	sound(t, dir)
}

func TestBorn(t *testing.T) {
	for name, c := range map[string]struct {
		file, content string
		want          bool
	}{
		"nothing":     {"description", "x", false},
		"a-header":    {"packed-refs", "# pack-refs with: peeled fully-peeled sorted\n", false},
		"packed":      {"packed-refs", strings.Repeat("1", 40) + " refs/heads/x\n", true},
		"loose":       {"refs/heads/x", strings.Repeat("1", 40), true},
		"empty":       {"refs/heads/x", "", true},
		"a-lock-only": {"refs/heads/x.lock", "", false},
		"a-reflog":    {"logs/HEAD", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			r := open(t, t.TempDir())
			write(t, r.git.Path, map[string]string{c.file: c.content})
			if got, err := born(r.git); got != c.want || err != nil {
				t.Errorf("got %v, %v, want %v", got, err, c.want)
			}
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"file": "", "link": "->."})
	for _, name := range []string{"file", "link", "none"} {
		t.Run(name, func(t *testing.T) {
			if _, err := Open(filepath.Join(dir, name), Options{}); err == nil {
				t.Errorf("Open(%q): got no error, want one", name)
			}
		})
	}
}

// With IfChanged there is no commit without changes, except the first one.
func TestSnapshotIfChanged(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	snap := func(call string) Snap {
		t.Helper()
		s, err := r.Snapshot(t.Context(), Message{Subject: "failed", Call: call, IfChanged: true})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := snap("c1.1")
	if same := snap("c1.2"); same.Commit.Hash != first.Commit.Hash || same.Changed != 0 {
		t.Errorf("without changes: got %+v, want the commit %s", same, first.Commit.Hash)
	}
	write(t, dir, map[string]string{"a": "1"})
	if next := snap("c1.3"); next.Commit.Hash == first.Commit.Hash || next.Changed != 1 {
		t.Errorf("with a change: got %+v, want a new commit with 1 change", next)
	}
	clean(t, dir)
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
		t.Errorf("Snapshot of the same call: got %+v, want the existing commit of %+v, with two changes", got, want)
	}
	next := snapshot(t, r, "second", "c2.2")
	if next.Existing || next.Changed != 1 {
		t.Errorf("got %+v, want a new commit with one change", next)
	}
	if got := git(t, dir, "log", "--format=%H", "-2"); got != next.Commit.Hash+"\n"+want.Commit.Hash {
		t.Errorf("log: got %q, want %s and %s", got, next.Commit.Hash, want.Commit.Hash)
	}
}

func TestSnapshotRefusesMessage(t *testing.T) {
	r := open(t, t.TempDir())
	if _, err := r.Snapshot(t.Context(), message("two\nlines", "1")); err == nil {
		t.Error("Snapshot with a subject of two lines: got no error, want one")
	}
}

func TestDiffers(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	write(t, dir, map[string]string{"a": "1", "b/c": "2", "d": "3", "e": "4", ".gitignore": "*.o\n"})
	snapshot(t, r, "s", "1")
	check := func(want ...string) {
		t.Helper()
		got, err := r.Differs(t.Context(), "")
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("Differs: got %q, %v, want %q", got, err, want)
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
	if got, _ := r.Differs(t.Context(), ""); len(got) != maxDiffers {
		t.Errorf("paths of Differs: got %d, want %d", len(got), maxDiffers)
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
		paths, err := r.Files(t.Context(), max)
		if err != nil || !slices.Equal(paths, all[:min(max, 4)]) {
			t.Errorf("Files(%d): got %q, %v, want %q", max, paths, err, all[:min(max, 4)])
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
			t.Errorf("tag %s: got %q, %v, %v, want %q", name, got, ok, err, want)
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
	sound(t, dir)
	for _, bad := range [][2]string{{"../x", one}, {"x", "12"}, {"x", strings.Repeat("1", 40)}, {"x.lock", one}} {
		if err := r.Tag(t.Context(), bad[0], bad[1]); err == nil {
			t.Errorf("Tag(%q, %q): got no error, want one", bad[0], bad[1])
		}
	}
}

// A kill between the copy of the old tag and the new tag does not create a second copy.
func TestTagInterrupted(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	one := snapshot(t, r, "one", "1").Commit.Hash
	two := snapshot(t, r, "two", "2").Commit.Hash
	must(t, r.Tag(t.Context(), "p", one))
	must(t, r.Tag(t.Context(), "p.1", one))
	must(t, r.Tag(t.Context(), "p", two))
	if got := git(t, dir, "tag"); got != "p\np.1" {
		t.Errorf("tags: got %q, want p and p.1", got)
	}
}

// The seal changes with files that steer git and with the history, but not with git's background
// work.
func TestSeal(t *testing.T) {
	dir := t.TempDir()
	git(t, dir, "init", "-q", "-b", "main")
	r := open(t, dir)
	snapshot(t, r, "s", "0")
	look := func() state.Seal {
		t.Helper()
		s, err := r.Seal()
		must(t, err)
		return s
	}
	free := map[string]func(){
		"index":       func() { write(t, dir, map[string]string{"a": "1"}); git(t, dir, "add", "a") },
		"objects":     func() { git(t, dir, "hash-object", "-w", "a") },
		"packs":       func() { git(t, dir, "repack", "-adq") },
		"gc":          func() { git(t, dir, "gc", "-q", "--prune=now") },
		"refs packed": func() { git(t, dir, "pack-refs", "--all") },
		"logs":        func() { git(t, dir, "reflog", "expire", "--expire=now", "--all") },
		"fetch":       func() { git(t, dir, "update-ref", "refs/remotes/origin/x", "HEAD") },
	}
	for _, name := range []string{"index", "objects", "packs", "refs packed", "gc", "logs", "fetch"} {
		was := look()
		free[name]()
		if diff := cmp.Diff(was, look()); diff != "" {
			t.Errorf("seal after %s (-want +got):\n%s", name, diff)
		}
	}
	hook := filepath.Join(dir, ".git/hooks/pre-commit")
	for _, c := range []struct { // in this order: some build on the one before
		steering, history string
		change            func()
	}{
		{"config", "", func() { git(t, dir, "config", "alias.x", "!sh") }},
		{"config.worktree", "", func() { write(t, dir, map[string]string{".git/config.worktree": "[a]\n"}) }},
		{"hooks/pre-commit", "", func() { write(t, dir, map[string]string{".git/hooks/pre-commit": "#!/bin/sh\n"}) }},
		{"hooks/pre-commit", "", func() { must(t, os.Chmod(hook, 0o755)) }},
		{"hooks/pre-commit", "", func() { must(t, os.WriteFile(hook, []byte("#!/bin/sh\ntouch x\n"), 0)) }},
		{"info/attributes", "", func() { write(t, dir, map[string]string{".git/info/attributes": "* filter=x\n"}) }},
		{"", "refs/heads/main", func() { git(t, dir, "commit", "-q", "--allow-empty", "--no-verify", "-m", "mine") }},
		{"", "refs/tags/mine", func() { git(t, dir, "tag", "mine") }},
		{"", "refs/heads/other", func() { git(t, dir, "branch", "other") }},
		{"", "refs/tags/mine", func() { git(t, dir, "tag", "-d", "mine") }},
	} {
		was := look()
		c.change()
		now := look()
		if got := strings.Join(state.Changed(was.Steering, now.Steering), " "); got != c.steering {
			t.Errorf("steering: got %q, want %q", got, c.steering)
		}
		if got := strings.Join(state.Changed(was.History, now.History), " "); got != c.history {
			t.Errorf("history: got %q, want %q", got, c.history)
		}
	}
	git(t, dir, "symbolic-ref", "HEAD", "refs/heads/other")
	if _, err := r.Seal(); !errors.Is(err, ErrForeign) {
		t.Errorf("Seal on another branch: got %v, want ErrForeign", err)
	}
}

// Seal fails if .git was replaced by another repository.
func TestSealRefuses(t *testing.T) {
	socket := func(path string) {
		l, err := net.Listen("unix", path)
		must(t, err)
		t.Cleanup(func() { l.Close() })
	}
	for name, plant := range map[string]func(git string){
		"alternates":      func(git string) { write(t, git, map[string]string{"objects/info/alternates": "/x"}) },
		"http alternates": func(git string) { write(t, git, map[string]string{"objects/info/http-alternates": "/x"}) },
		"hook link":       func(git string) { write(t, git, map[string]string{"hooks/pre-commit": "->../../run.sh"}) },
		"hooks link": func(git string) {
			must(t, os.RemoveAll(filepath.Join(git, "hooks")))
			write(t, git, map[string]string{"hooks": "->../.husky"})
		},
		"ref fifo":     func(git string) { must(t, syscall.Mkfifo(filepath.Join(git, "refs/heads/x"), 0o644)) },
		"HEAD fifo":    func(git string) { must(t, os.Remove(git+"/HEAD")); must(t, syscall.Mkfifo(git+"/HEAD", 0o644)) },
		"config fifo":  func(git string) { must(t, os.Remove(git+"/config")); must(t, syscall.Mkfifo(git+"/config", 0o644)) },
		"socket":       func(git string) { socket(filepath.Join(git, "fsmonitor--daemon.ipc")) },
		"pack link":    func(git string) { write(t, git, map[string]string{"objects/pack/pack-1.pack": "->/etc/passwd"}) },
		"objects link": func(git string) { write(t, git, map[string]string{"objects/ab": "->/etc"}) },
		"info link":    func(git string) { write(t, git, map[string]string{"info/exclude": "->/etc/passwd"}) },
		"top link":     func(git string) { write(t, git, map[string]string{"ORIG_HEAD": "->/etc/passwd"}) },
		"logs link": func(git string) {
			must(t, os.RemoveAll(git+"/logs"))
			write(t, git, map[string]string{"logs": "->/tmp"})
		},
		"another .git":  func(git string) { must(t, os.Rename(git, git+"2")); must(t, os.CopyFS(git, os.DirFS(git+"2"))) },
		"a linked .git": func(git string) { must(t, os.Rename(git, git+"2")); must(t, os.Symlink(git+"2", git)) },
		"huge config":   func(git string) { must(t, os.Truncate(git+"/config", 1<<40)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			r := open(t, dir)
			snapshot(t, r, "s", "0")
			_, err := r.Seal()
			must(t, err)
			plant(filepath.Join(dir, ".git"))
			if _, err := r.Seal(); !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), dir) {
				t.Errorf("Seal: got %v, want ErrForeign that names %s", err, dir)
			}
		})
	}
}

// A shallow clone ends at a commit whose parent is missing.
func TestShallow(t *testing.T) {
	source, dir := t.TempDir(), filepath.Join(t.TempDir(), "clone")
	r := open(t, source)
	for i := range 3 {
		snapshot(t, r, "s", fmt.Sprint(i))
	}
	git(t, source, "clone", "-q", "--depth", "1", "file://"+source, dir)
	if s := snapshot(t, open(t, dir), "s", "2"); !s.Existing {
		t.Errorf("Snapshot of the last call: got %+v, want an existing commit", s)
	}
	write(t, dir, map[string]string{"new": "1"})
	if s := snapshot(t, open(t, dir), "s", "3"); s.Changed != 1 {
		t.Errorf("got %+v, want one change", s)
	}
	sound(t, dir)
}

func TestLockedByGit(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	for _, name := range []string{"index.lock", "HEAD.lock", "refs/heads/main.lock"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, ".git", name)
			must(t, os.WriteFile(path, nil, 0o644))
			_, err := r.Snapshot(t.Context(), message("s", "1"))
			if !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), path) {
				t.Errorf("Snapshot: got %v, want ErrForeign that names %s", err, path)
			}
			must(t, os.Remove(path))
		})
	}
	snapshot(t, r, "s", "1")
	sound(t, dir)
}
