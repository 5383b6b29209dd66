package git

import (
	"errors"
	"path/filepath"
	"testing"
)

// remote is a repository of the user's with a bare one as its origin, which has refs/abl/state.
func remote(t *testing.T) (dir, bare string, r *Remote) {
	t.Helper()
	dir, bare = grown(t), filepath.Join(t.TempDir(), "origin.git")
	git(t, dir, "init", "-q", "--bare", "-b", "main", bare)
	git(t, dir, "remote", "add", "origin", bare)
	git(t, dir, "update-ref", "refs/abl/state", "main~1")
	git(t, dir, "push", "-q", "origin", "refs/abl/state")
	git(t, dir, "update-ref", "refs/abl/state", "main")
	git(t, dir, "update-ref", "refs/abl/tests", "main")
	r, err := origin(t, dir).Remote("origin")
	must(t, err)
	must(t, r.Look(t.Context(), "abl/"))
	return dir, bare, r
}

// A push sets all refs, or none if one of them is not what the last look showed.
func TestRemotePush(t *testing.T) {
	refs := []string{"refs/abl/state", "refs/abl/tests"}
	for name, c := range map[string]struct {
		before func(t *testing.T, dir, bare string)
		want   error
		tests  bool // the remote has refs/abl/tests afterwards
	}{
		"as seen":          {before: func(*testing.T, string, string) {}, tests: true},
		"reply lost":       {before: losesReply, tests: true},
		"moved":            {before: movesState, want: ErrBehind},
		"removed":          {before: removesState, want: ErrBehind},
		"local without it": {before: partsState, want: ErrBehind},
		"away":             {before: hidesRemote, want: ErrRemote},
	} {
		t.Run(name, func(t *testing.T) {
			dir, bare, r := remote(t)
			c.before(t, dir, bare)
			if err := r.Push(t.Context(), refs...); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if got := git(t, bare, "for-each-ref", "refs/abl/tests") != ""; got != c.tests {
				t.Errorf("refs/abl/tests of the remote: got %v, want %v", got, c.tests)
			}
			if c.want == nil && r.Ref("refs/abl/state") != git(t, dir, "rev-parse", "refs/abl/state") {
				t.Errorf("the state of the remote: got %s, want that of the push", r.Ref("refs/abl/state"))
			}
		})
	}
}

// losesReply pushes the state, and makes a further commit on it.
func losesReply(t *testing.T, dir, _ string) {
	t.Helper()
	git(t, dir, "push", "-q", "origin", "refs/abl/state")
	git(t, dir, "update-ref", "refs/abl/state", git(t, dir, "commit-tree", "-p", "main", "-m", "next", "main^{tree}"))
}

// other is a commit of the remote's that the local repository does not have.
func other(t *testing.T, dir, bare string) string {
	t.Helper()
	clone := t.TempDir()
	git(t, dir, "clone", "-q", dir, clone)
	git(t, clone, "commit", "-q", "--allow-empty", "-m", "other")
	git(t, clone, "push", "-q", bare, "HEAD:refs/heads/other")
	return git(t, bare, "rev-parse", "other")
}

func movesState(t *testing.T, dir, bare string) {
	t.Helper()
	git(t, bare, "update-ref", "refs/abl/state", other(t, dir, bare))
}

func removesState(t *testing.T, _, bare string) {
	t.Helper()
	git(t, bare, "update-ref", "-d", "refs/abl/state")
}

// partsState lets the local state name a commit without a parent.
func partsState(t *testing.T, dir, _ string) {
	t.Helper()
	git(t, dir, "update-ref", "refs/abl/state", git(t, dir, "commit-tree", "-m", "apart", "main^{tree}"))
}

func hidesRemote(t *testing.T, dir, bare string) {
	t.Helper()
	git(t, dir, "remote", "set-url", "origin", bare+".gone")
}

// A fetch copies refs and moves none that the user or abl works with.
func TestRemoteFetch(t *testing.T) {
	dir, bare, r := remote(t)
	git(t, bare, "update-ref", "refs/abl/state", other(t, dir, bare))
	git(t, bare, "update-ref", "refs/heads/abl/phase1", "other")
	before := git(t, dir, "for-each-ref", "refs/abl", "refs/heads")
	must(t, r.Fetch(t.Context(), "abl/"))
	if after := git(t, dir, "for-each-ref", "refs/abl", "refs/heads"); after != before {
		t.Errorf("local refs: got\n%s\nwant\n%s", after, before)
	}
	want := git(t, bare, "rev-parse", "other")
	for _, ref := range []string{"refs/abl-remote/state", "refs/remotes/origin/abl/phase1"} {
		if got := git(t, dir, "rev-parse", ref); got != want {
			t.Errorf("%s: got %s, want %s", ref, got, want)
		}
	}
	if _, err := origin(t, dir).Remote("upstream"); err == nil {
		t.Error("a remote that does not exist: got no error, want one")
	}
}
