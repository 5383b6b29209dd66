package project

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"abl/cmd/internal/exit"
	"abl/internal/state"
)

// The branches of phases have the configured prefix in the user's repository, for publish and pull.
func TestPrefix(t *testing.T) {
	for _, prefix := range []string{"bot/", "bot/abl-", "phases_"} {
		t.Run(prefix, func(t *testing.T) {
			s := published(t)
			runGit(t, s.Paths.Root, "branch", "-D", "abl/phase1")
			runGit(t, s.Paths.Root, "branch", "abl") // beside which there is no abl/phase1
			s.Conf.Publish.Prefix = prefix
			build(t, s, "2")
			_, err := s.Publish(t.Context(), 0)
			must(t, err)
			if got := runGit(t, s.Paths.Root, "show", prefix+"phase1:built"); got != "2" {
				t.Errorf("the branch has %q, want 2", got)
			}
			root, err := state.Real(t.TempDir())
			must(t, err)
			runGit(t, root, "clone", "-q", "file://"+s.Paths.Root, ".")
			other := &Project{In: quiet(), Folder: Folder{Conf: s.Conf, Paths: state.NewProject(root, ".abl/work/src", ".abl/tests")}}
			must(t, os.MkdirAll(filepath.Join(root, state.Dir, "specs"), 0o755))
			hint := exit.Hint(continued(t, other))
			fetch, _, ok := strings.Cut(hint, " fetches it")
			if !ok {
				t.Fatalf("got the hint %q, want a command", hint)
			}
			runGit(t, root, strings.Fields(strings.ReplaceAll(strings.TrimPrefix(fetch, "git "), "'", ""))...)
			_, err = other.Pull(t.Context(), false)
			must(t, err)
			if got, _ := os.ReadFile(filepath.Join(other.Paths.Src, "built")); string(got) != "2" {
				t.Errorf("the clone has %q, want 2", got)
			}
		})
	}
}

// A branch abl leaves no room for abl/phase1, which publish says before it moves a ref.
func TestNoRoomForBranches(t *testing.T) {
	for name, pack := range map[string]bool{"a file": false, "packed": true} {
		t.Run(name, func(t *testing.T) {
			s := published(t)
			runGit(t, s.Paths.Root, "branch", "-D", "abl/phase1")
			runGit(t, s.Paths.Root, "branch", "abl")
			if pack {
				runGit(t, s.Paths.Root, "pack-refs", "--all")
			}
			before := refsOf(t, s)
			_, err := s.Publish(t.Context(), 0)
			if exit.Code(err) != exit.Usage || !strings.Contains(exit.Hint(err), "publish.prefix") {
				t.Errorf("got %v, want exit %d with publish.prefix", err, exit.Usage)
			}
			if now := refsOf(t, s); now != before {
				t.Errorf("refs: got\n%s\nwant\n%s", now, before)
			}
			o, _, err := s.Origin()
			must(t, err)
			remarks, err := o.Remarks(runGit(t, s.Paths.Root, "rev-parse", "main"), nil)
			if err != nil || !strings.Contains(strings.Join(remarks, "\n"), "set publish.prefix") {
				t.Errorf("remarks: got %q, %v, want publish.prefix", remarks, err)
			}
		})
	}
}
