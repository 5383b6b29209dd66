package git

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Both the user and the clone add commits.
func TestMerge(t *testing.T) {
	for name, c := range map[string]struct {
		ours, theirs map[string]string // "" takes a file away
		files        string            // of the merge, with their content
		conflict     string
	}{
		"apart":              {map[string]string{"new.js": "n"}, map[string]string{"lib/a.js": "3", "their.js": "t"}, "lib/a.js=3 lib/twin=k new.js=n package.json={} run.sh=#!/bin/sh their.js=t", ""},
		"nothing new":        {map[string]string{"new.js": "n"}, nil, "lib/a.js=2 lib/twin=k new.js=n package.json={} run.sh=#!/bin/sh", ""},
		"nothing of its own": {nil, map[string]string{"lib/a.js": "3", "run.sh": ""}, "lib/a.js=3 lib/twin=k package.json={}", ""},
		"both the same":      {map[string]string{"lib/a.js": "3"}, map[string]string{"lib/a.js": "3", "t": "t"}, "lib/a.js=3 lib/twin=k package.json={} run.sh=#!/bin/sh t=t", ""},
		"a folder goes":      {map[string]string{"new.js": "n"}, map[string]string{"lib/a.js": "", "lib/twin": "", "lib": "file"}, "lib=file new.js=n package.json={} run.sh=#!/bin/sh", ""},
		"left out":           {map[string]string{"new.js": "n"}, map[string]string{".abl/config.yaml": "version: 2", ".abl/more": "m"}, "lib/a.js=2 lib/twin=k new.js=n package.json={} run.sh=#!/bin/sh", ""},
		"a conflict":         {map[string]string{"lib/a.js": "ours", "package.json": "o"}, map[string]string{"lib/a.js": "theirs", "package.json": "t"}, "", "lib/a.js, package.json"},
		"one takes away":     {map[string]string{"lib/a.js": "ours"}, map[string]string{"lib/a.js": ""}, "", "lib/a.js"},
		"file and folder":    {map[string]string{"x/y": "1"}, map[string]string{"x": "2"}, "", "x"},
		"with one between":   {map[string]string{"x/y": "1"}, map[string]string{"x": "2", "x-z": "3"}, "", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := grown(t)
			r := cloned(t, dir, ".abl", "secret")
			commitFiles(t, dir, c.theirs)
			for path, text := range c.ours {
				write(t, r.Dir(), map[string]string{path: text})
				if text == "" {
					must(t, os.Remove(filepath.Join(r.Dir(), path)))
				}
			}
			if c.ours != nil {
				snapshot(t, r, "built", "p1-build-1.1")
			}
			before := git(t, r.Dir(), "rev-parse", "HEAD")
			got, err := takeIn(t, r, dir)
			if c.conflict != "" {
				if !errors.Is(err, ErrConflict) || !strings.HasSuffix(err.Error(), ": "+c.conflict) {
					t.Errorf("got %v, want a conflict in %s", err, c.conflict)
				}
				if now := git(t, r.Dir(), "rev-parse", "HEAD"); now != before {
					t.Errorf("tip of the branch: got %s, want %s as before", now, before)
				}
				clean(t, r.Dir())
				return
			}
			must(t, err)
			if tip := git(t, r.Dir(), "rev-parse", "abl/phase1"); got.Hash != tip {
				t.Errorf("tip of the branch: got %s, want the merge %s", tip, got.Hash)
			}
			clean(t, r.Dir())
			if files := contentIn(t, r.Dir()); files != c.files {
				t.Errorf("files of the work tree: got %s\nwant %s", files, c.files)
			}
			for _, commit := range []string{before, git(t, dir, "rev-parse", "main")} {
				git(t, r.Dir(), "merge-base", "--is-ancestor", commit, "HEAD")
			}
			if want := git(t, dir, "rev-parse", "main:.abl"); git(t, r.Dir(), "rev-parse", "HEAD:.abl") != want {
				t.Errorf(".abl of the merge: got %s, want %s", git(t, r.Dir(), "rev-parse", "HEAD:.abl"), want)
			}
		})
	}
}

// takeIn merges the tip of the user's branch.
func takeIn(t *testing.T, r *Repo, dir string) (Commit, error) {
	t.Helper()
	o, err := OpenOrigin(dir)
	must(t, err)
	_, tip, err := o.Head()
	must(t, err)
	must(t, o.Fetch(t.Context(), r, tip))
	return o.Merge(t.Context(), r, tip, "merge main", nil)
}

// commitFiles commits files in the user's repository. "" removes a file.
func commitFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for path, text := range files {
		if text == "" {
			must(t, os.Remove(filepath.Join(dir, path)))
		}
	}
	os.Remove(filepath.Join(dir, "lib")) // where a file takes its place
	for path, text := range files {
		if text != "" {
			write(t, dir, map[string]string{path: text})
		}
	}
	if files != nil {
		git(t, dir, "add", "-A")
		git(t, dir, "commit", "-qm", "the user's")
	}
}

func contentIn(t *testing.T, dir string) string {
	t.Helper()
	var all []string
	for _, name := range strings.Fields(git(t, dir, "ls-files")) {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil && name != "link" {
			all = append(all, name+"="+strings.TrimSpace(string(data)))
		}
	}
	return strings.Join(all, " ")
}

// A branch moves to the tip of the current one unless that would lose a commit.
func TestSwitch(t *testing.T) {
	r := cloned(t, grown(t))
	write(t, r.Dir(), map[string]string{"new.js": "1"})
	tip := snapshot(t, r, "built", "p1-build-1.1").Commit.Hash
	for _, branch := range []string{"abl/phase2", "abl/phase1"} {
		must(t, r.Switch(t.Context(), branch))
		if got := git(t, r.Dir(), "rev-parse", "HEAD", branch); got != tip+"\n"+tip {
			t.Errorf("HEAD and tip of %s: got %s, want %s for both", branch, got, tip)
		}
	}
	git(t, r.Dir(), "update-ref", "refs/heads/abl/phase2", git(t, r.Dir(), "commit-tree", "-m", "the user's", "-p", tip, "HEAD^{tree}"))
	if err := r.Switch(t.Context(), "abl/phase2"); !errors.Is(err, ErrForeign) {
		t.Errorf("got %v, want that a person decides", err)
	}
}

// After a kill between the branch and the work tree, the next Open completes the merge.
func TestMergeInterrupted(t *testing.T) {
	dir := grown(t)
	r := cloned(t, dir)
	commitFiles(t, dir, map[string]string{"lib/a.js": "3", "their.js": "t", "package.json": ""})
	o, err := OpenOrigin(dir)
	must(t, err)
	was := git(t, dir, "rev-parse", "main~1")
	is := git(t, dir, "rev-parse", "main")
	must(t, o.Fetch(t.Context(), r, is))
	must(t, r.git.Replace(underWay, []byte(was+" "+is+"\n")))
	again, err := Open(r.Dir(), Options{Clone: true}) // before the branch moved
	must(t, err)
	clean(t, r.Dir())
	must(t, r.git.Replace(underWay, []byte(was+" "+is+"\n")))
	must(t, again.git.Move(context.Background(), again.ref(), was, is))
	write(t, r.Dir(), map[string]string{"their.js": "t"}) // one file was written
	_, err = Open(r.Dir(), Options{Clone: true})
	must(t, err)
	clean(t, r.Dir())
}

// The cases include two sides that have merged each other, an ignored link of the agent, and a
// submodule with files of the agent.
func TestMergeOf(t *testing.T) {
	t.Run("two sides that merged each other", func(t *testing.T) {
		dir := grown(t)
		commitFiles(t, dir, map[string]string{"x": "1"})
		r := cloned(t, dir)
		write(t, r.Dir(), map[string]string{"x": "2"})
		built := snapshot(t, r, "built", "p1-build-1.1").Commit.Hash
		must(t, origin(t, dir).Receive(t.Context(), r, "refs/heads/abl/phase1", built))
		commitFiles(t, dir, map[string]string{"y": "1"})
		_, err := takeIn(t, r, dir)
		must(t, err)
		write(t, r.Dir(), map[string]string{"x": "1"}) // back again
		snapshot(t, r, "built", "p1-build-2.1")
		git(t, dir, "merge", "-q", "--no-edit", built)
		_, err = takeIn(t, r, dir)
		must(t, err)
		if got := contentIn(t, r.Dir()); !strings.Contains(got, "x=1 y=1") {
			t.Errorf("files of the work tree: got %s, want x=1 and y=1 among them", got)
		}
	})
	t.Run("two sides that merged each other, and agree", func(t *testing.T) {
		dir := grown(t)
		r := cloned(t, dir)
		write(t, r.Dir(), map[string]string{"x": "2"})
		built := snapshot(t, r, "built", "p1-build-1.1").Commit.Hash
		must(t, origin(t, dir).Receive(t.Context(), r, "refs/heads/abl/phase1", built))
		commitFiles(t, dir, map[string]string{"y": "1"})
		_, err := takeIn(t, r, dir)
		must(t, err)
		git(t, dir, "merge", "-q", "--no-edit", built)
		_, err = takeIn(t, r, dir)
		must(t, err)
		if got := contentIn(t, r.Dir()); !strings.Contains(got, "x=2 y=1") {
			t.Errorf("files of the work tree: got %s, want x=2 and y=1 among them", got)
		}
	})
	t.Run("a link to .git", func(t *testing.T) {
		dir := grown(t)
		r := cloned(t, dir)
		write(t, r.Dir(), map[string]string{".gitignore": "tools\n", "tools": "->.git"})
		snapshot(t, r, "built", "p1-build-1.1")
		commitFiles(t, dir, map[string]string{"tools/config": "c"})
		if _, err := takeIn(t, r, dir); err == nil || !strings.Contains(err.Error(), `"tools" is in the way`) {
			t.Errorf("got %v, want that the link is in the way", err)
		}
		if _, err := os.Lstat(filepath.Join(r.Dir(), ".git/config")); err != nil {
			t.Error(err)
		}
	})
	t.Run("a submodule with files", func(t *testing.T) {
		dir := grown(t)
		stands := func(at string) {
			git(t, dir, "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat(at, 40)+",deps/lib")
			git(t, dir, "commit", "-qm", "submodule")
		}
		stands("1")
		r := cloned(t, dir)
		write(t, r.Dir(), map[string]string{"deps/lib/cache": "x"})
		stands("2")
		_, err := takeIn(t, r, dir)
		must(t, err)
		if _, err := os.Lstat(filepath.Join(r.Dir(), "deps/lib/cache")); err != nil {
			t.Error(err)
		}
	})
}

// An ignored link of the agent does not redirect a file of the user into .git.
func TestMergeThroughALink(t *testing.T) {
	dir := grown(t)
	r := cloned(t, dir)
	write(t, r.Dir(), map[string]string{".gitignore": "tools\n"})
	must(t, os.Symlink(".git/hooks", filepath.Join(r.Dir(), "tools")))
	snapshot(t, r, "built", "p1-build-1.1")
	commitFiles(t, dir, map[string]string{"tools/pre-commit": "run me"})
	if _, err := takeIn(t, r, dir); err == nil || !strings.Contains(err.Error(), `"tools" is in the way`) {
		t.Errorf("got %v, want that the link is in the way", err)
	}
	if _, err := os.Lstat(filepath.Join(r.Dir(), ".git", "hooks", "pre-commit")); err == nil {
		t.Error(".git/hooks/pre-commit: got a file, want none")
	}
}

// Renames, attributes and neighbouring lines are merged as by git, with and without merge-tree.
func TestMergeAsGit(t *testing.T) {
	long := strings.Repeat("a line of this file\n", 20)
	for name, c := range map[string]struct {
		base, ours, theirs map[string]string // "" removes a file
		files              string            // of the merge, "" for a conflict
	}{
		"a rename and an edit": {
			map[string]string{"old.js": long}, map[string]string{"old.js": "", "new.js": long},
			map[string]string{"old.js": long + "more\n"}, "new.js=" + long + "more",
		},
		"an edit and a rename": {
			map[string]string{"old.js": long}, map[string]string{"old.js": long + "more\n"},
			map[string]string{"old.js": "", "new.js": long}, "new.js=" + long + "more",
		},
		"both renamed it": {
			map[string]string{"old.js": long}, map[string]string{"old.js": "", "ours.js": long},
			map[string]string{"old.js": "", "theirs.js": long}, "",
		},
		"lines near each other": {
			map[string]string{"a": "1\n2\n3\n4\n"}, map[string]string{"a": "one\n2\n3\n4\n"},
			map[string]string{"a": "1\n2\n3\nfour\n"}, "a=one\n2\n3\nfour",
		},
		"a union": {
			map[string]string{"log": "1\n", ".gitattributes": "log merge=union\n"}, map[string]string{"log": "1\nours\n"},
			map[string]string{"log": "1\ntheirs\n"}, ".gitattributes=log merge=union log=1\nours\ntheirs",
		},
		"a folder is renamed": { // what is left out could move with it
			map[string]string{"conf/a": long, "conf/b": long + "b\n"},
			map[string]string{"conf/a": "", "conf/b": "", "etc/a": long, "etc/b": long + "b\n"},
			map[string]string{"conf/secrets/key": "k"}, "etc/a=" + long[:len(long)-1] + " etc/b=" + long + "b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			git(t, dir, "init", "-q", "-b", "main")
			commitFiles(t, dir, c.base)
			r := cloned(t, dir, "conf/secrets")
			for path, text := range c.ours {
				write(t, r.Dir(), map[string]string{path: text})
				if text == "" {
					must(t, os.Remove(filepath.Join(r.Dir(), path)))
				}
			}
			built := snapshot(t, r, "built", "p1-build-1.1").Commit.Hash
			commitFiles(t, dir, c.theirs)
			o, tip := origin(t, dir), git(t, dir, "rev-parse", "main")
			must(t, o.Fetch(t.Context(), r, tip))
			s, err := newScratch(t.Context(), r.git, &o.repository, &r.repository)
			must(t, err)
			defer s.close()
			old, oldConflicts, err := s.mergeInWorkTree(t.Context(), built, tip)
			must(t, err)
			_, err = o.Merge(t.Context(), r, tip, "merge main", nil)
			if c.files == "" {
				if !errors.Is(err, ErrConflict) || len(oldConflicts) == 0 {
					t.Errorf("got %v and the conflicts %q of a work tree, want a conflict", err, oldConflicts)
				}
				return
			}
			must(t, err)
			if tree := git(t, r.Dir(), "rev-parse", "HEAD^{tree}"); tree != strings.TrimSpace(old) {
				t.Errorf("the merge in a work tree: got %s and conflicts %q, want %s", old, oldConflicts, tree)
			}
			if got := contentIn(t, r.Dir()); got != c.files {
				t.Errorf("files of the work tree: got %q\nwant %q", got, c.files)
			}
			clean(t, r.Dir())
		})
	}
}

// Uncommitted changes stay. A merge that would overwrite one fails before it changes anything.
func TestMergeOverEdits(t *testing.T) {
	for name, c := range map[string]struct {
		edited map[string]string
		ok     bool
	}{
		"other files":        {map[string]string{"new.js": "n", "package.json": "edited"}, true},
		"the same file":      {map[string]string{"lib/a.js": "edited"}, false},
		"a folder of it":     {map[string]string{"their": "a file"}, false},
		"a file that is new": {map[string]string{"their/x": "mine"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := grown(t)
			r := cloned(t, dir)
			write(t, r.Dir(), c.edited)
			edited, err := r.Differs(t.Context(), "")
			must(t, err)
			commitFiles(t, dir, map[string]string{"lib/a.js": "3", "their/x": "t"})
			before, tip := git(t, r.Dir(), "status", "--porcelain"), git(t, dir, "rev-parse", "main")
			o := origin(t, dir)
			must(t, o.Fetch(t.Context(), r, tip))
			_, err = o.Merge(t.Context(), r, tip, "merge main", edited)
			if (err == nil) != c.ok || err != nil && !errors.Is(err, ErrEdited) {
				t.Errorf("got %v, want that it merges: %t", err, c.ok)
			}
			if now := git(t, r.Dir(), "status", "--porcelain"); now != before {
				t.Errorf("git status after the merge: got\n%s\nwant\n%s", now, before)
			}
			for path, text := range c.edited {
				if got, _ := os.ReadFile(filepath.Join(r.Dir(), path)); string(got) != text {
					t.Errorf("%s: got %q, want %q", path, got, text)
				}
			}
		})
	}
}

// The commands for a conflict keep omitted paths as in the user's repository, in new clones and in
// those of older versions.
func TestMergeByHand(t *testing.T) {
	for name, earlier := range map[string]bool{"a clone": false, "a clone of an earlier version": true} {
		t.Run(name, func(t *testing.T) {
			dir := grown(t)
			r := cloned(t, dir, ".abl", "secret")
			if earlier {
				must(t, os.WriteFile(filepath.Join(r.Dir(), ".git/config"), []byte(newConfig), 0o644))
				must(t, os.Remove(filepath.Join(r.Dir(), ".git", sparseFile)))
				again, err := Open(r.Dir(), Options{Clone: true, Without: []string{".abl", "secret"}})
				must(t, err)
				r = again
			}
			write(t, r.Dir(), map[string]string{"lib/a.js": "ours"})
			snapshot(t, r, "built", "p1-build-1.1")
			commitFiles(t, dir, map[string]string{
				"lib/a.js": "theirs", ".abl/config.yaml": "changed", ".abl/specs/phase2.md": "a new spec", "secret/key": "", "their.js": "t",
			})
			if _, err := takeIn(t, r, dir); !errors.Is(err, ErrConflict) {
				t.Fatalf("got %v, want a conflict", err)
			}
			merge, commit, ok := strings.Cut(origin(t, dir).ByHand(t.Context(), r.Dir(), git(t, dir, "rev-parse", "main")), "; resolve the conflicts; ")
			if !ok {
				t.Fatalf("ByHand: got %q, want two commands", merge)
			}
			byHand := func(line string) error {
				_, err := tryGit("/", strings.Fields(strings.TrimPrefix(line, "git "))...)
				return err
			}
			if byHand(merge) == nil {
				t.Error("git merge: got no conflict, want one")
			}
			write(t, r.Dir(), map[string]string{"lib/a.js": "both"})
			touched(t, r.Dir())
			must(t, byHand(commit+" -m merged"))
			if got, want := git(t, r.Dir(), "rev-parse", "HEAD:.abl"), git(t, dir, "rev-parse", "main:.abl"); got != want {
				t.Errorf(".abl of the merge: got %s, want the user's %s", got, want)
			}
			if got := git(t, r.Dir(), "diff", "--name-only", git(t, dir, "rev-parse", "main"), "HEAD"); got != "lib/a.js" {
				t.Errorf("paths that differ from the user's commit: got %q, want lib/a.js", got)
			}
			if _, err := os.Lstat(filepath.Join(r.Dir(), ".abl")); err == nil {
				t.Error(".abl in the work tree: got an entry, want none")
			}
			if got := git(t, r.Dir(), "show", "HEAD:lib/a.js"); got != "both" {
				t.Errorf("lib/a.js of the merge: got %q, want %q", got, "both")
			}
			again, err := Open(r.Dir(), Options{Clone: true, Without: []string{".abl", "secret"}})
			must(t, err)
			if err := again.Whole(git(t, r.Dir(), "rev-parse", "HEAD")); err != nil {
				t.Errorf("got %v, want no placeholder in the commit", err)
			}
			if differ, err := again.Differs(t.Context(), ""); err != nil || len(differ) > 0 {
				t.Errorf("Differs: got %q, %v, want no path", differ, err)
			}
		})
	}
}

// touched sets the time of every file, so that git reads all again.
func touched(t *testing.T, dir string) {
	t.Helper()
	for _, name := range strings.Fields(git(t, dir, "ls-files")) {
		path := filepath.Join(dir, name)
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
			must(t, os.Chtimes(path, info.ModTime().Add(-time.Hour), info.ModTime().Add(-time.Hour)))
		}
	}
}

// Whole rejects a commit with the placeholder instead of a file.
func TestWhole(t *testing.T) {
	dir := grown(t)
	r := cloned(t, dir, ".abl", "secret")
	must(t, r.Whole(git(t, r.Dir(), "rev-parse", "HEAD")))
	git(t, r.Dir(), "update-index", "--no-skip-worktree", "secret/key")
	write(t, r.Dir(), map[string]string{"secret/key": leftOut})
	git(t, r.Dir(), "-c", "remote.abl.promisor=1", "commit", "-qm", "by hand", "secret/key")
	if err := r.Whole(git(t, r.Dir(), "rev-parse", "HEAD")); !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), "secret/key") {
		t.Errorf("got %v, want that it names secret/key", err)
	}
}
