package git

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestMergeLines(t *testing.T) {
	const base = "a\nb\nc\nd\ne\n"
	for name, c := range map[string]struct{ ours, theirs, want string }{
		"apart":             {"A\nb\nc\nd\ne\n", "a\nb\nc\nd\nE\n", "A\nb\nc\nd\nE\n"},
		"alike":             {"a\nB\nc\nd\ne\n", "a\nB\nc\nd\ne\n", "a\nB\nc\nd\ne\n"},
		"ours alone":        {"a\nc\nd\ne\n", base, "a\nc\nd\ne\n"},
		"theirs alone":      {base, "0\na\nb\nc\nd\ne\nf", "0\na\nb\nc\nd\ne\nf"},
		"alike and apart":   {"A\nb\nc\nd\nE\n", "A\nb\nc\nd\ne\n", "A\nb\nc\nd\nE\n"},
		"near each other":   {"A\nb\nc\nd\ne\n", "a\nb\nc\nD\ne\n", ""},
		"the same line":     {"a\nb\nX\nd\ne\n", "a\nb\nY\nd\ne\n", ""},
		"lines that touch":  {"a\nB\nc\nd\ne\n", "a\nb\nC\nd\ne\n", ""},
		"added at one spot": {"a\nx\nb\nc\nd\ne\n", "a\ny\nb\nc\nd\ne\n", ""},
		"gone and changed":  {"a\nb\n", "a\nb\nc\nD\ne\n", ""},
		"without an end":    {"a\nb\nc\nd\ne", "A\nb\nc\nd\ne\n", "A\nb\nc\nd\ne"},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := mergeLines(base, c.ours, c.theirs)
			if got != c.want || ok != (c.want != "") {
				t.Errorf("got %q, %v, want %q", got, ok, c.want)
			}
			if want, err := gitMerges(t, base, c.ours, c.theirs); ok && (err != nil || want != got) {
				t.Errorf("git merge-file gives %q, %v; this %q", want, err, got)
			}
		})
	}
}

// gitMerges is what git makes of the same.
func gitMerges(t *testing.T, base, ours, theirs string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, map[string]string{"base": base, "ours": ours, "theirs": theirs})
	cmd := exec.Command("git", "merge-file", "-p", "ours", "base", "theirs")
	cmd.Dir = dir
	out, err := cmd.Output()
	return string(out), err
}

// TestMerge: the person goes on while the clone does.
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
					t.Errorf("the branch moved from %s to %s", before, now)
				}
				clean(t, r.Dir())
				return
			}
			must(t, err)
			if tip := git(t, r.Dir(), "rev-parse", "abl/phase1"); got.Hash != tip {
				t.Errorf("merged to %s, the branch is at %s", got.Hash, tip)
			}
			clean(t, r.Dir())
			if files := contentIn(t, r.Dir()); files != c.files {
				t.Errorf("the work tree holds %s\nwant %s", files, c.files)
			}
			for _, commit := range []string{before, git(t, dir, "rev-parse", "main")} {
				git(t, r.Dir(), "merge-base", "--is-ancestor", commit, "HEAD")
			}
			if want := git(t, dir, "rev-parse", "main:.abl"); git(t, r.Dir(), "rev-parse", "HEAD:.abl") != want {
				t.Error("what is left out is not the person's any more")
			}
		})
	}
}

// takeIn merges the tip of the person's branch.
func takeIn(t *testing.T, r *Repo, dir string) (Commit, error) {
	t.Helper()
	o, err := OpenOrigin(dir)
	must(t, err)
	_, tip, err := o.Head()
	must(t, err)
	must(t, o.Fetch(t.Context(), r, tip))
	return r.Merge(t.Context(), tip, "take in main")
}

// commitFiles commits files in the person's repository; "" takes one away.
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
		git(t, dir, "commit", "-qm", "the person's")
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

// TestSwitch: a branch moves on to where the other is, and lets go of no commit.
func TestSwitch(t *testing.T) {
	r := cloned(t, grown(t))
	write(t, r.Dir(), map[string]string{"new.js": "1"})
	tip := snapshot(t, r, "built", "p1-build-1.1").Commit.Hash
	for _, branch := range []string{"abl/phase2", "abl/phase1"} {
		must(t, r.Switch(t.Context(), branch))
		if got := git(t, r.Dir(), "rev-parse", "HEAD", branch); got != tip+"\n"+tip {
			t.Errorf("%s stands at %s, want %s", branch, got, tip)
		}
	}
	git(t, r.Dir(), "update-ref", "refs/heads/abl/phase2", git(t, r.Dir(), "commit-tree", "-m", "the person's", "-p", tip, "HEAD^{tree}"))
	if err := r.Switch(t.Context(), "abl/phase2"); !errors.Is(err, ErrForeign) {
		t.Errorf("got %v, want that a person decides", err)
	}
}

// TestMergeIsCutShort: a kill between the branch and the work tree is made good by the
// next who opens the repository.
func TestMergeIsCutShort(t *testing.T) {
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
	must(t, again.git.Move(context.Background(), again.ref(), was, is, 0))
	write(t, r.Dir(), map[string]string{"their.js": "t"}) // one file was written
	_, err = Open(r.Dir(), Options{Clone: true})
	must(t, err)
	clean(t, r.Dir())
}

// TestMergeOf: two sides that have merged each other, an ignored link of the agent's, and a
// submodule in which the agent left files.
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
		if _, err := takeIn(t, r, dir); !errors.Is(err, ErrConflict) {
			t.Errorf("got %v, want a conflict", err)
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
			t.Errorf("the work tree holds %s", got)
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

// TestMergeThroughALink: an ignored link of the agent's leads no file of the person's
// into .git.
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
		t.Error("a hook was written")
	}
}
