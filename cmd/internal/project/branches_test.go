package project

import (
	"strings"
	"testing"
)

// A reviewer pushes a commit to the branch of a phase, or rewrites it. No later phase is lost, and the branch
// stays as the reviewer left it.
func TestReviewersCommit(t *testing.T) {
	for name, c := range map[string]struct {
		rewrite bool
		push    []string
	}{
		"added":     {push: []string{"refs/heads/abl/*", "refs/abl/*"}},
		"rewritten": {rewrite: true, push: []string{"refs/abl/*"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := passed(t)
			runGit(t, s.Paths.Root, "switch", "-q", "--detach") // so that its branches can be pushed to
			you := fresh(t, s)
			acts(t, you, 0, "refs/heads/abl/*", "refs/abl/*") // has the branch as it was
			parent := Branch(1)
			if c.rewrite {
				parent = "main"
			}
			fix := runGit(t, s.Paths.Root, "commit-tree", "-p", parent, "-m", "fix", "main^{tree}")
			runGit(t, s.Paths.Root, "update-ref", "refs/heads/"+Branch(1), fix)
			for _, job := range []*Project{you, fresh(t, s)} {
				var printed strings.Builder
				job.In.Bare.Stderr = &printed
				runGit(t, job.Paths.Root, "fetch", "-q", "origin", "+refs/heads/abl/*:refs/remotes/origin/abl/*")
				must(t, continued(t, job))
				f, err := job.State()
				must(t, err)
				phase := len(f.Begun()) + 1
				acts(t, job, phase, append(c.push, Branch(phase))...)
				if got := strings.Contains(printed.String(), "stays at"); got {
					t.Errorf("got a warning about the branch, want none:\n%s", printed.String())
				}
			}
			if got := runGit(t, s.Paths.Root, "rev-parse", Branch(1)); got != fix {
				t.Errorf("the reviewed branch: got %s, want %s", got, fix)
			}
			f, err := fresh(t, s).State()
			must(t, err)
			if len(f.Begun()) < 2 {
				t.Errorf("got %d published phases, want the later ones", len(f.Begun()))
			}
		})
	}
}

// TestPublishBesideTheUsersCommit checks that a commit of the user on the branch of a phase stays, and that the
// phase is published without that branch.
func TestPublishBesideTheUsersCommit(t *testing.T) {
	s := published(t)
	var printed strings.Builder
	s.In.Bare.Stderr = &printed
	users := runGit(t, s.Paths.Root, "commit-tree", "-p", Branch(1), "-m", "mine", "main^{tree}")
	runGit(t, s.Paths.Root, "update-ref", "refs/heads/"+Branch(1), users)
	tip := build(t, s, "2")
	_, err := s.Publish(t.Context(), 0)
	must(t, err)
	if got := runGit(t, s.Paths.Root, "rev-parse", Branch(1), sourceRef); got != users+"\n"+tip {
		t.Errorf("the branch and the source: got %s, want %s and %s", got, users, tip)
	}
	if want := Branch(1) + " stays at " + users[:12]; !strings.Contains(printed.String(), want) {
		t.Errorf("got %q, want %q", printed.String(), want)
	}
}
