package phase

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"abl/internal/testing/lab"
)

// history makes src a repository of the user, with a branch, a remote and a commit.
func history(p *lab.Project) {
	p.Helper()
	p.Write("src/README", "by the user\n")
	p.Git("src", "init", "-q", "-b", "trunk")
	p.Git("src", "-c", "user.name=P", "-c", "user.email=p@example.com", "commit", "-q", "--allow-empty", "-m",
		"an empty start")
	p.Git("src", "add", ".")
	p.Git("src", "-c", "user.name=P", "-c", "user.email=p@example.com", "commit", "-q", "-m", "a first file")
	p.Git("src", "tag", "v1")
	p.Git("src", "remote", "add", "origin", "https://example.com/x.git")
	p.Write("src/.git/hooks/post-commit", "#!/bin/sh\ntouch "+filepath.Join(p.Dir, "hook-ran")+"\n")
	if err := os.Chmod(filepath.Join(p.Dir, "src/.git/hooks/post-commit"), 0o755); err != nil {
		p.Fatal(err)
	}
}

// abl continues a history that the user brought, and runs none of its hooks.
func TestAdoptedHistory(t *testing.T) {
	p := newProject(t, nodeApp, builds(write("server.mjs", server)), verifies())
	history(p)
	config := p.Read("src/.git/config")
	p.Must(0, "phase", "1")
	if got := p.Git("src", "log", "--reverse",
		"--format=%s|%an|%ae"); got != "an empty start|P|p@example.com\na first file|P|p@example.com\n"+
		"phase1/build/step-1|abl|abl@localhost" {
		t.Errorf("history: got\n%s\nwant two commits of P and one of abl", got)
	}
	if got := p.Git("src", "branch", "--show-current"); got != "trunk" {
		t.Errorf("the branch: got %q, want trunk", got)
	}
	if got := p.Git("src", "tag"); got != "phase1/passed\nv1" {
		t.Errorf("tags: got %q, want phase1/passed and v1", got)
	}
	if got := p.Read("src/.git/config"); got != config {
		t.Errorf("the config: got\n%s\nwant\n%s", got, config)
	}
	if p.Git("src", "status", "--porcelain") != "" || p.Git("src", "fsck", "--strict") != "" {
		t.Error("git status and git fsck: got output, want none")
	}
	if _, err := os.Stat(filepath.Join(p.Dir, "hook-ran")); err == nil {
		t.Error("the post-commit hook: got a run of it, want none")
	}
	if got := p.Read("src/README"); got != "by the user\n" {
		t.Errorf("README: got %q, want it unchanged", got)
	}
}

// abl refuses a history that it cannot continue, and changes nothing.
func TestRefusedHistory(t *testing.T) {
	p := newProject(t, nodeApp, builds(), verifies())
	for _, c := range []struct {
		name string
		make func()
		want string
	}{
		{"merge-in-progress", func() { p.Write("src/.git/MERGE_HEAD", p.Git("src", "rev-parse", "HEAD")+"\n") }, "merge"},
		{"detached-HEAD", func() { p.Git("src", "checkout", "-q", "--detach") }, "HEAD"},
		{"alternates", func() { p.Write("src/.git/objects/info/alternates", "/elsewhere\n") }, "alternates"},
		{".git-file", func() {
			if err := os.Rename(filepath.Join(p.Dir, "src/.git"), filepath.Join(p.Dir, "elsewhere.git")); err != nil {
				t.Fatal(err)
			}
			p.Write("src/.git", "gitdir: ../elsewhere.git\n")
		}, ".git"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, path := range []string{"src", "elsewhere.git"} {
				if err := os.RemoveAll(filepath.Join(p.Dir, path)); err != nil {
					t.Fatal(err)
				}
			}
			history(p)
			c.make()
			before := listTree(t, filepath.Join(p.Dir, "src"))
			r := p.Must(9, "phase", "1")
			wants(t, "the error", r.Stderr, c.want)
			if after := listTree(t, filepath.Join(p.Dir, "src")); after != before {
				t.Errorf("src: got\n%s\nwant\n%s", after, before)
			}
			if strings.Contains(p.Read(".abl/logs/tokens.csv"), "builder") {
				t.Error("the ledger: got a call, want none")
			}
			checkNothingLeft(p)
		})
	}
}

// listTree lists the files of a directory with their type, mode, owner and content.
func listTree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		b.WriteString(strings.TrimPrefix(path, dir) + " " + info.Mode().String() + " " + ownerOf(info))
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			b.WriteString(" " + string(data))
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
