package git

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// origin opens a repository as the user's.
func origin(t *testing.T, dir string) *Origin {
	t.Helper()
	o, err := OpenOrigin(dir)
	must(t, err)
	return o
}

// The user's repository gets the branch of a clone. Its files do not change.
func TestReceive(t *testing.T) {
	dir := grown(t)
	r := cloned(t, dir, ".abl")
	write(t, dir, map[string]string{"lib/a.js": "not committed"})
	status := git(t, dir, "status", "--porcelain")
	for n, text := range []string{"1", "2"} {
		write(t, r.Dir(), map[string]string{"new.js": text, "deep/er/file": text})
		s := snapshot(t, r, "built", "p1-build-"+text+".1")
		for range 2 { // once more does nothing
			must(t, origin(t, dir).Receive(t.Context(), r, "refs/heads/abl/phase1", s.Commit.Hash))
		}
		if got := git(t, dir, "rev-list", "--count", "main..abl/phase1"); got != []string{"1", "2"}[n] {
			t.Errorf("commits on the branch: got %s, want %d", got, n+1)
		}
	}
	sound(t, dir)
	if got := git(t, dir, "status", "--porcelain"); got != status {
		t.Errorf("git status of the user's work tree: got %q, want %q", got, status)
	}
	if got := git(t, dir, "diff", "--name-only", "main...abl/phase1"); got != "deep/er/file\nnew.js" {
		t.Errorf("changed paths: got %q, want deep/er/file and new.js", got)
	}
}

// Receive overwrites neither what another user published nor the current branch of a work tree.
func TestReceiveIsRefused(t *testing.T) {
	dir := grown(t)
	r, other := cloned(t, dir), cloned(t, dir)
	const ref = "refs/heads/abl/phase1"
	var tips []string
	for i, clone := range []*Repo{r, other} {
		write(t, clone.Dir(), map[string]string{"new.js": strings.Repeat("x", i+1)})
		tips = append(tips, snapshot(t, clone, "built", "p1-build-1.1").Commit.Hash)
	}
	must(t, origin(t, dir).Receive(t.Context(), r, ref, tips[0]))
	if err := origin(t, dir).Receive(t.Context(), other, ref, tips[1]); !errors.Is(err, ErrBehind) {
		t.Errorf("Receive from a second clone: got %v, want ErrBehind", err)
	}
	if got := git(t, dir, "rev-parse", ref); got != tips[0] {
		t.Errorf("%s: got %s, want %s", ref, got, tips[0])
	}
	write(t, r.Dir(), map[string]string{"new.js": "more"})
	next := snapshot(t, r, "built", "p1-build-2.1").Commit.Hash
	tree := filepath.Join(t.TempDir(), "tree")
	git(t, dir, "worktree", "add", "-q", tree, "abl/phase1")
	if err := origin(t, dir).Receive(t.Context(), r, ref, next); !errors.Is(err, ErrForeign) {
		t.Errorf("Receive with the branch in another work tree: got %v, want ErrForeign", err)
	}
	git(t, dir, "worktree", "remove", tree)
	git(t, dir, "switch", "-q", "abl/phase1")
	if err := origin(t, dir).Receive(t.Context(), r, ref, next); !errors.Is(err, ErrForeign) {
		t.Errorf("Receive on the current branch: got %v, want ErrForeign", err)
	}
	git(t, dir, "switch", "-q", "main")
	must(t, origin(t, dir).Receive(t.Context(), r, ref, next))
}

func TestKeep(t *testing.T) {
	dir := grown(t)
	o := origin(t, dir)
	const ref = "refs/abl/state"
	files := map[string][]byte{"state.json": []byte("{}"), "reports/one.json": []byte("1")}
	first, err := o.Keep(t.Context(), ref, "", "phase 1 passed", files)
	must(t, err)
	if again, err := o.Keep(t.Context(), ref, first, "phase 1 passed", files); err != nil || again != first {
		t.Errorf("Keep without a change: got %s, %v, want %s", again, err, first)
	}
	files["state.json"] = []byte("{ }")
	second, err := o.Keep(t.Context(), ref, first, "phase 2 passed", files)
	must(t, err)
	if _, err := o.Keep(t.Context(), ref, first, "phase 3 passed", nil); !errors.Is(err, ErrForeign) {
		t.Errorf("Keep after an old commit: got %v, want ErrForeign", err)
	}
	sound(t, dir)
	if got := git(t, dir, "log", "--format=%s", ref); got != "phase 2 passed\nphase 1 passed" {
		t.Errorf("history: got %q, want %q", got, "phase 2 passed\nphase 1 passed")
	}
	kept, err := o.Kept(second)
	if err != nil || len(kept) != 2 || string(kept["state.json"]) != "{ }" || string(kept["reports/one.json"]) != "1" {
		t.Errorf("Kept: got %q, %v, want the two files of the second commit", kept, err)
	}
}

// A few nested trees can list more files than fit in memory.
func TestKeptIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("millions of files are counted")
	}
	dir := grown(t)
	line := "100644 blob " + git(t, dir, "rev-parse", "HEAD:run.sh")
	for range 4 {
		var lines strings.Builder
		for n := range 50 {
			fmt.Fprintf(&lines, "%s\t%02d\n", line, n)
		}
		cmd := exec.Command("git", "-C", dir, "mktree")
		cmd.Stdin = strings.NewReader(lines.String())
		out, err := cmd.Output()
		must(t, err)
		line = "040000 tree " + strings.TrimSpace(string(out))
	}
	commit := git(t, dir, "commit-tree", "-m", "bomb", strings.Fields(line)[2])
	if _, err := origin(t, dir).Kept(commit); !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v, want %v", err, ErrTooLarge)
	}
}
