package git

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// adopted creates a user's repository with two commits, a remote, hooks and other features.
func adopted(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	git(t, dir, "init", "-q", "-b", "trunk")
	write(t, dir, map[string]string{"a": "1", "lib/b": "2", "lib/c": "3", ".gitignore": "*.o\n"})
	commitByGit(t, dir)
	write(t, dir, map[string]string{"forced.o": "4"})
	git(t, dir, "add", "-f", "forced.o")
	commitByGit(t, dir)
	git(t, dir, "remote", "add", "origin", "https://example.test/x.git")
	for _, hook := range []string{"pre-commit", "post-commit", "commit-msg", "reference-transaction", "post-index-change"} {
		must(t, os.WriteFile(filepath.Join(dir, ".git/hooks", hook), []byte("#!/bin/sh\ntouch "+dir+"/RAN\nexit 1\n"), 0o755))
	}
	git(t, dir, "config", "core.fsmonitor", "touch "+dir+"/RAN")
	return dir
}

func TestAdopt(t *testing.T) {
	dir := adopted(t)
	before := git(t, dir, "-c", "core.fsmonitor=", "rev-parse", "HEAD")
	config, err := os.ReadFile(filepath.Join(dir, ".git/config"))
	must(t, err)
	r := open(t, dir)
	if r.branch != "trunk" || r.Dir() != dir {
		t.Errorf("branch and directory: got %q and %q, want trunk and %q", r.branch, r.Dir(), dir)
	}
	write(t, dir, map[string]string{"new.o": "x", "new": "y", "forced.o": "changed"})
	s := snapshot(t, r, "phase1/build/step-1", "c1.1")
	if s.Changed != 2 {
		t.Errorf("changed paths: got %d, want 2, new and forced.o", s.Changed)
	}
	if _, err := os.Stat(filepath.Join(dir, "RAN")); err == nil {
		t.Error("a program of the repository: got a run of it, want none")
	}
	if now, _ := os.ReadFile(filepath.Join(dir, ".git/config")); string(now) != string(config) {
		t.Errorf(".git/config: got %q, want %q", now, config)
	}
	git(t, dir, "config", "--unset", "core.fsmonitor")
	if got := git(t, dir, "log", "-1", "--format=%P %an %ae %s %(trailers:key=Abl-Call,valueonly)"); strings.TrimSpace(got) != before+" abl abl@localhost phase1/build/step-1 c1.1" {
		t.Errorf("log: got %s, want %s abl abl@localhost phase1/build/step-1 c1.1", got, before)
	}
	clean(t, dir)
	sound(t, dir)
}

// The tree is the same as git's for each version of the index.
func TestAdoptEachIndex(t *testing.T) {
	for name, prepare := range map[string]func(dir string){
		"v4":      func(dir string) { git(t, dir, "update-index", "--index-version", "4") },
		"missing": func(dir string) { must(t, os.Remove(filepath.Join(dir, ".git/index"))) },
		"staged": func(dir string) {
			write(t, dir, map[string]string{"staged": "s", "a": "worse"})
			git(t, dir, "add", "staged", "a")
			must(t, os.Remove(filepath.Join(dir, "staged")))
		},
		"intended":  func(dir string) { write(t, dir, map[string]string{"w": ""}); git(t, dir, "add", "-N", "w") },
		"removed":   func(dir string) { git(t, dir, "rm", "-q", "--cached", "lib/b", "forced.o") },
		"packed":    func(dir string) { git(t, dir, "gc", "-q") },
		"untracked": func(dir string) { git(t, dir, "update-index", "--untracked-cache") },
		"filemode": func(dir string) {
			git(t, dir, "config", "core.filemode", "false")
			must(t, os.Chmod(filepath.Join(dir, "a"), 0o755))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, twin := adopted(t), t.TempDir()
			must(t, os.RemoveAll(filepath.Join(dir, ".git/hooks")))
			git(t, dir, "config", "--unset", "core.fsmonitor")
			prepare(dir)
			must(t, os.CopyFS(twin, os.DirFS(dir)))
			if name == "missing" { // git forgets that an ignored file was tracked, abl does not
				git(t, twin, "reset", "-q")
			}
			snapshot(t, open(t, dir), "s", "1")
			commitByGit(t, twin)
			if got, want := git(t, dir, "rev-parse", "HEAD^{tree}"), git(t, twin, "rev-parse", "HEAD^{tree}"); got != want {
				t.Errorf("tree of HEAD: got\n%s\nwant git's\n%s",
					git(t, dir, "ls-tree", "-r", "HEAD"), git(t, twin, "ls-tree", "-r", "HEAD"))
			}
			clean(t, dir)
			sound(t, dir)
		})
	}
}

func TestForeign(t *testing.T) {
	conflict := func(dir string) {
		git(t, dir, "checkout", "-q", "-b", "side", "HEAD~1")
		write(t, dir, map[string]string{"a": "side"})
		commitByGit(t, dir)
		git(t, dir, "checkout", "-q", "trunk")
		write(t, dir, map[string]string{"a": "trunk"})
		commitByGit(t, dir)
	}
	put := func(name, content string) func(dir string) {
		return func(dir string) { write(t, dir, map[string]string{".git/" + name: content}) }
	}
	link := func(name, target string) func(dir string) {
		return func(dir string) {
			must(t, os.RemoveAll(filepath.Join(dir, ".git", name)))
			must(t, os.Symlink(target, filepath.Join(dir, ".git", name)))
		}
	}
	for name, prepare := range map[string]func(dir string){
		"gitfile": func(dir string) {
			must(t, os.Rename(filepath.Join(dir, ".git"), filepath.Join(dir, "elsewhere")))
			write(t, dir, map[string]string{".git": "gitdir: elsewhere"})
		},
		"link": func(dir string) {
			must(t, os.Rename(filepath.Join(dir, ".git"), filepath.Join(dir, "elsewhere")))
			write(t, dir, map[string]string{".git": "->elsewhere"})
		},
		"merge":       func(dir string) { conflict(dir); tryGit(dir, "merge", "side") },
		"rebase":      func(dir string) { conflict(dir); tryGit(dir, "rebase", "side") },
		"cherry-pick": func(dir string) { conflict(dir); tryGit(dir, "cherry-pick", "side") },
		"revert":      put("REVERT_HEAD", strings.Repeat("1", 40)),
		"unmerged": func(dir string) {
			conflict(dir)
			tryGit(dir, "merge", "side")
			must(t, os.Remove(filepath.Join(dir, ".git/MERGE_HEAD")))
		},
		"bisect":      func(dir string) { git(t, dir, "bisect", "start") },
		"detached":    func(dir string) { git(t, dir, "checkout", "-q", "--detach") },
		"orphan":      func(dir string) { git(t, dir, "checkout", "-q", "--orphan", "new") },
		"empty ref":   put("refs/heads/trunk", ""),
		"torn ref":    put("refs/heads/trunk", "1234"),
		"zero ref":    put("refs/heads/trunk", strings.Repeat("0", 30)+"\x00"),
		"empty HEAD":  put("HEAD", ""),
		"no HEAD":     func(dir string) { must(t, os.Remove(filepath.Join(dir, ".git/HEAD"))) },
		"lost ref":    func(dir string) { must(t, os.Remove(filepath.Join(dir, ".git/refs/heads/trunk"))) },
		"alternates":  put("objects/info/alternates", "/elsewhere/objects\n"),
		"torn index":  func(dir string) { must(t, os.Truncate(filepath.Join(dir, ".git/index"), 100)) },
		"empty index": put("index", ""),
		"split index": func(dir string) { git(t, dir, "update-index", "--split-index") },
		"sparse":      func(dir string) { git(t, dir, "sparse-checkout", "set", "--no-cone", "lib"); git(t, dir, "status") },
		"submodule": func(dir string) {
			git(t, dir, "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("1", 40)+",m")
		},
		"worktree":  func(dir string) { git(t, dir, "config", "core.worktree", "/elsewhere") },
		"bare":      func(dir string) { git(t, dir, "config", "core.bare", "true") },
		"extension": put("config", "[core]\n\trepositoryformatversion = 1\n[extensions]\n\trefStorage = reftable\n"),
		"sha256":    put("config", "[extensions]\n\tobjectFormat = sha256\n"),
		"config":    put("config", "[core\n"),
		"HEAD folder": func(dir string) {
			link("HEAD", "x")(dir)
			must(t, os.Remove(filepath.Join(dir, ".git/HEAD")))
			must(t, os.Mkdir(filepath.Join(dir, ".git/HEAD"), 0o755))
		},
		"linked refs":  link("refs/heads", "/tmp"),
		"linked index": link("index", "/tmp/x"),
		"linked HEAD":  link("HEAD", "config"),
		"linked hook":  put("hooks/pre-commit", "->../../run.sh"),
		"linked tag":   put("refs/tags/x", "->../heads/trunk"),
	} {
		t.Run(name, func(t *testing.T) {
			dir := adopted(t)
			git(t, dir, "config", "--unset", "core.fsmonitor")
			must(t, os.RemoveAll(filepath.Join(dir, ".git/hooks")))
			prepare(dir)
			r, err := Open(dir, Options{})
			if err == nil {
				_, err = r.Snapshot(t.Context(), message("s", "1"))
			}
			if !errors.Is(err, ErrForeign) {
				t.Fatalf("error: got %v, want ErrForeign", err)
			}
			if !strings.Contains(err.Error(), dir) {
				t.Errorf("error: got %v, want one that names %s", err, dir)
			}
			t.Log(err)
		})
	}
}

// The user starts operations between two snapshots.
func TestForeignLater(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	snapshot(t, r, "s", "1")
	git(t, dir, "checkout", "-q", "-b", "mine")
	if _, err := r.Snapshot(t.Context(), message("s", "2")); !errors.Is(err, ErrForeign) {
		t.Errorf("Snapshot on another branch: got %v, want ErrForeign", err)
	}
	git(t, dir, "checkout", "-q", "main")
	commitByGit(t, dir)
	person := git(t, dir, "rev-parse", "HEAD")
	snapshot(t, r, "s", "2")
	if got := git(t, dir, "rev-parse", "HEAD~1"); got != person {
		t.Errorf("parent of HEAD: got %s, want the user's commit %s", got, person)
	}
	must(t, os.Rename(filepath.Join(dir, ".git"), filepath.Join(dir, "old")))
	git(t, dir, "init", "-q")
	if _, err := r.Snapshot(t.Context(), message("s", "3")); !errors.Is(err, ErrForeign) {
		t.Errorf("Snapshot with another .git: got %v, want ErrForeign", err)
	}
}
