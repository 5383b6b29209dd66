package git

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Repositories of all supported shapes can be cloned, merged from and published to.
func TestOriginOfShapes(t *testing.T) {
	prefix := func(text string) func(t *testing.T, dir string) string {
		return func(t *testing.T, dir string) string {
			at := filepath.Join(dir, ".git/config")
			data, err := os.ReadFile(at)
			must(t, err)
			must(t, os.WriteFile(at, append([]byte(text), data...), 0o644))
			return dir
		}
	}
	for name, change := range map[string]func(t *testing.T, dir string) string{
		"a symbolic branch": func(t *testing.T, dir string) string {
			git(t, dir, "branch", "-m", "trunk")
			git(t, dir, "symbolic-ref", "refs/heads/main", "refs/heads/trunk")
			git(t, dir, "symbolic-ref", "HEAD", "refs/heads/main")
			return dir
		},
		"a byte order mark":    prefix("\xef\xbb\xbf"),
		"sections on one line": prefix("[alias] st = status\n[user \"a]\\\"b\"] name = x # y\n[core]bare=false\n"),
		"a comment after it":   prefix("[alias] # none\n[user] ; none\n"),
		"a work tree": func(t *testing.T, dir string) string {
			at := filepath.Join(t.TempDir(), "tree")
			git(t, dir, "worktree", "add", "-q", "-b", "other", at)
			return at
		},
		"a work tree with relative paths": func(t *testing.T, dir string) string {
			at := dir + "-tree"
			if _, err := tryGit(dir, "worktree", "add", "-q", "--relative-paths", "-b", "other", at); err == nil { // git 2.48
				return at
			}
			git(t, dir, "worktree", "add", "-q", "-b", "other", at)
			name := filepath.Base(at)
			write(t, at, map[string]string{".git": "gitdir: ../" + filepath.Base(dir) + "/.git/worktrees/" + name + "\n"})
			write(t, dir, map[string]string{".git/worktrees/" + name + "/gitdir": "../../../../" + name + "/.git\n"})
			return at
		},
		"packed refs":       func(t *testing.T, dir string) string { git(t, dir, "pack-refs", "--all"); return dir },
		"a detached HEAD":   func(t *testing.T, dir string) string { git(t, dir, "switch", "-q", "--detach"); return dir },
		"a sparse checkout": func(t *testing.T, dir string) string { git(t, dir, "sparse-checkout", "set", "lib"); return dir },
	} {
		t.Run(name, func(t *testing.T) {
			dir := change(t, grown(t))
			r := cloned(t, dir, ".abl", "secret")
			write(t, r.Dir(), map[string]string{"new.js": "3"})
			built := snapshot(t, r, "built", "p1-build-1.1").Commit.Hash
			git(t, dir, "commit", "-q", "--allow-empty", "-m", "the user's")
			_, err := takeIn(t, r, dir)
			must(t, err)
			at, _, err := r.Head()
			must(t, err)
			must(t, origin(t, dir).Receive(t.Context(), r, "refs/heads/abl/phase1", built))
			must(t, origin(t, dir).Receive(t.Context(), r, "refs/heads/abl/phase1", at.Hash))
			if got := git(t, dir, "diff", "--name-only", "HEAD", "abl/phase1"); got != "new.js" {
				t.Errorf("paths that differ in the published branch: got %q, want new.js", got)
			}
			sound(t, dir)
		})
	}
}

// The error names the unsupported feature and the remedy.
func TestOriginOfUnsupportedShapes(t *testing.T) {
	for name, c := range map[string]struct{ config, want string }{
		"sha256":   {"[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = sha256\n", "abl reads SHA-1 objects only"},
		"reftable": {"[core]\n\trepositoryformatversion = 1\n[extensions] refStorage = reftable\n", "git refs migrate --ref-format=files"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := grown(t)
			must(t, os.WriteFile(filepath.Join(dir, ".git/config"), []byte(c.config), 0o644))
			if _, err := OpenOrigin(dir); !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	t.Run("a loop of symbolic branches", func(t *testing.T) {
		dir := grown(t)
		write(t, dir, map[string]string{".git/refs/heads/a": "ref: refs/heads/b\n", ".git/refs/heads/b": "ref: refs/heads/a\n"})
		if _, err := origin(t, dir).Ref("refs/heads/a"); !errors.Is(err, ErrForeign) {
			t.Errorf("got %v, want that the user decides", err)
		}
	})
	t.Run("a branch that a work tree is on by another name", func(t *testing.T) {
		dir := grown(t)
		r := cloned(t, dir)
		write(t, r.Dir(), map[string]string{"new.js": "3"})
		built := snapshot(t, r, "built", "p1-build-1.1").Commit.Hash
		git(t, dir, "symbolic-ref", "refs/heads/abl/phase1", "refs/heads/main")
		if err := origin(t, dir).Receive(t.Context(), r, "refs/heads/abl/phase1", built); !errors.Is(err, ErrForeign) {
			t.Errorf("got %v, want that the branch of the work tree stays", err)
		}
	})
}

// A partial clone can be cloned if it has the content of the commit itself. Otherwise the error
// names the command that fetches the rest.
func TestOriginOfPartialClones(t *testing.T) {
	for name, c := range map[string]struct {
		filter string
		change func(t *testing.T, dir string)
		want   string
	}{
		"blob:none":                  {"blob:none", nil, ""},
		"blob:none, no work tree":    {"blob:none", func(t *testing.T, dir string) { git(t, dir, "reset", "-q", "--soft", "HEAD~2") }, `the content of "lib/a.js" is missing`},
		"blob:none, left out":        {"blob:none", func(t *testing.T, dir string) { forget(t, dir, "HEAD:secret/key", "HEAD:.abl/config.yaml") }, ""},
		"tree:0":                     {"tree:0", nil, "a directory of its history is missing"},
		"tree:0, all was fetched":    {"tree:0", func(t *testing.T, dir string) { refetch(t, dir) }, ""},
		"blob:none, all was fetched": {"blob:none", func(t *testing.T, dir string) { refetch(t, dir) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			from, dir := grown(t), t.TempDir()
			commitFiles(t, from, map[string]string{"secret/key": "unlike any other"})
			git(t, from, "config", "uploadpack.allowFilter", "true")
			git(t, from, "config", "uploadpack.allowAnySHA1InWant", "true")
			git(t, dir, "clone", "-q", "--filter="+c.filter, "file://"+from, ".")
			if c.change != nil {
				c.change(t, dir)
			}
			ran := filepath.Join(dir, "ran")
			git(t, dir, "config", "remote.origin.url", "ext::sh -c touch% "+ran)
			git(t, dir, "config", "protocol.ext.allow", "always")
			o := origin(t, dir)
			_, head, err := o.Head()
			must(t, err)
			err = o.Clone(t.Context(), t.TempDir(), head, "abl/phase1", []string{".abl", "secret"})
			if _, lerr := os.Lstat(ran); lerr == nil {
				t.Error("fetch from the remote: got one, want none")
			}
			if c.want != "" {
				if !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "git fetch --refetch --no-filter") {
					t.Errorf("got %v, want %q and the command", err, c.want)
				}
				return
			}
			must(t, err)
			r := cloned(t, dir, ".abl", "secret")
			clean(t, r.Dir())
			if got := git(t, r.Dir(), "log", "-p", "--format=%s"); !strings.Contains(got, "one") {
				t.Errorf("git log -p: got %s, want the commit %q in it", got, "one")
			}
			write(t, r.Dir(), map[string]string{"new.js": "3"})
			built := snapshot(t, r, "built", "p1-build-1.1").Commit.Hash
			git(t, dir, "update-ref", "HEAD", git(t, dir, "commit-tree", "-p", "HEAD", "-m", "the user's", "HEAD^{tree}"))
			if since, err := gitSince(t.Context(), 2, 38); err == nil && since { // an older one checks out what is left out
				_, err = takeIn(t, r, dir)
				must(t, err)
			}
			must(t, origin(t, dir).Receive(t.Context(), r, "refs/heads/abl/phase1", built))
		})
	}
}

// forget removes objects of the last commit that a partial clone may lack.
func forget(t *testing.T, dir string, names ...string) {
	t.Helper()
	packs, err := filepath.Glob(filepath.Join(dir, ".git/objects/pack/*"))
	must(t, err)
	var lost []string
	for _, name := range names {
		lost = append(lost, git(t, dir, "rev-parse", name))
	}
	apart := t.TempDir()
	for _, at := range packs {
		must(t, os.Rename(at, filepath.Join(apart, filepath.Base(at))))
		if strings.HasSuffix(at, ".pack") {
			unpack := exec.Command("sh", "-c", `git -C "$1" unpack-objects -q <"$2"`, "sh", dir, filepath.Join(apart, filepath.Base(at)))
			if out, err := unpack.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
	}
	for _, hash := range lost {
		must(t, os.Remove(filepath.Join(dir, ".git/objects", hash[:2], hash[2:])))
	}
}

// refetch fetches the missing objects of a partial clone with the command from the error.
func refetch(t *testing.T, dir string) {
	t.Helper()
	if out, err := tryGit(dir, "fetch", "-q", "--refetch", "--no-filter"); err != nil {
		t.Skipf("this git has no --refetch: %s", out)
	}
}
