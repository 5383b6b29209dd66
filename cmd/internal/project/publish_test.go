package project

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"abl/internal/config"
	"abl/internal/git"
	"abl/internal/ledger"
	"abl/internal/state"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func runGit(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=p", "-c", "user.email=p@localhost"}, args...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// published returns a project on a user's repository, whose phase 1 was built once and published.
func published(t *testing.T) *Project {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git to make a repository with")
	}
	root, err := state.Real(t.TempDir())
	must(t, err)
	runGit(t, root, "init", "-q", "-b", "main")
	must(t, os.WriteFile(filepath.Join(root, "a"), []byte("1"), 0o644))
	must(t, os.MkdirAll(filepath.Join(root, state.Dir, "specs"), 0o755))
	runGit(t, root, "add", "a")
	runGit(t, root, "commit", "-qm", "one")
	s := &Project{In: quiet(), Folder: Folder{Conf: &config.Loaded{}, Paths: state.NewProject(root, ".abl/work/src", ".abl/tests")}}
	s.Conf.Source.Repo = "."
	x, err := s.exchange()
	must(t, err)
	x.file.Phases["1"] = &state.Phase{Status: state.Refuted, Round: 1, Iteration: 1, Step: 1}
	must(t, os.MkdirAll(s.Paths.Tests, 0o755))
	must(t, x.cloneTo(t.Context(), s.Paths.Src, runGit(t, root, "rev-parse", "main"), Branch(1), withheld(s.Folder)))
	build(t, s, "1")
	must(t, state.Save(s.Paths.State(), x.file))
	_, err = s.Publish(t.Context(), 0)
	must(t, err)
	return s
}

// build commits a file as the Builder.
func build(t *testing.T, s *Project, text string) string {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(s.Paths.Src, "built"), []byte(text), 0o644))
	r, err := git.Open(s.Paths.Src, s.SourceOptions())
	must(t, err)
	snap, err := r.Snapshot(t.Context(), git.Message{Subject: text})
	must(t, err)
	return snap.Commit.Hash
}

// TestPublishWasKilled checks that the next publish corrects a kill between moving the refs and
// writing state.json.
func TestPublishWasKilled(t *testing.T) {
	s := published(t)
	f, err := s.State()
	must(t, err)
	tip := f.Published
	f.Published = ""
	must(t, state.Save(s.Paths.State(), f))
	_, err = s.Publish(t.Context(), 0)
	must(t, err)
	if f, err = s.State(); err != nil || f.Published != tip {
		t.Errorf("published commit in state.json: got %s, error %v, want %s", f.Published, err, tip)
	}
}

// TestPullOfANewerBranch checks that a fetched branch of a phase replaces an older local one.
func TestPullOfANewerBranch(t *testing.T) {
	s := published(t)
	old := runGit(t, s.Paths.Root, "rev-parse", Branch(1))
	tip := build(t, s, "2")
	_, err := s.Publish(t.Context(), 0)
	must(t, err)
	runGit(t, s.Paths.Root, "update-ref", "refs/remotes/origin/"+Branch(1), tip)
	runGit(t, s.Paths.Root, "update-ref", "refs/heads/"+Branch(1), old)
	must(t, os.Remove(s.Paths.State()))
	_, err = s.Pull(t.Context(), false)
	must(t, err)
	if got := runGit(t, s.Paths.Src, "rev-parse", "HEAD"); got != tip {
		t.Errorf("the clone is at %s, want %s", got, tip)
	}
	if got := runGit(t, s.Paths.Root, "rev-parse", Branch(1)); got != tip {
		t.Errorf("the branch here is at %s, want %s, which was fetched", got, tip)
	}
}

// TestPullBesideAnotherBranch checks that a pull finds a fetched branch if the local one has other commits.
func TestPullBesideAnotherBranch(t *testing.T) {
	for name, s := range map[string]*Project{"refuted": published(t), "passed": passed(t)} {
		t.Run(name, func(t *testing.T) {
			f, err := s.State()
			must(t, err)
			tip := runGit(t, s.Paths.Root, "rev-parse", Branch(1))
			f.Phases["1"].SrcCommit = tip
			must(t, state.Save(s.Paths.State(), f))
			_, err = s.Publish(t.Context(), 0)
			must(t, err)
			other := runGit(t, s.Paths.Root, "commit-tree", "-p", "main", "-m", "other", "main^{tree}")
			runGit(t, s.Paths.Root, "update-ref", "refs/heads/"+Branch(1), other)
			runGit(t, s.Paths.Root, "update-ref", "-d", sourceRef) // as published by an earlier version
			must(t, os.Remove(s.Paths.State()))
			if _, err := s.Pull(t.Context(), false); err == nil {
				t.Error("pull without the commit of the phase: got no error, want one")
			}
			runGit(t, s.Paths.Root, "update-ref", "refs/remotes/origin/"+Branch(1), tip)
			_, err = s.Pull(t.Context(), false)
			must(t, err)
			if got := runGit(t, s.Paths.Src, "rev-parse", "HEAD"); got != tip {
				t.Errorf("the clone is at %s, want %s, which was fetched", got, tip)
			}
			if got := runGit(t, s.Paths.Root, "rev-parse", Branch(1)); got != other {
				t.Errorf("the local branch is at %s, want %s, which the user made", got, other)
			}
		})
	}
}

// TestPullKeepsWhatIsNotPublished checks that a pull does not replace the user's work in the clone.
func TestPullKeepsWhatIsNotPublished(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, s *Project){
		"a commit": func(t *testing.T, s *Project) { build(t, s, "decided") },
		"a file":   func(t *testing.T, s *Project) { must(t, os.WriteFile(filepath.Join(s.Paths.Src, "built"), nil, 0o644)) },
		"nothing":  nil,
	} {
		t.Run(name, func(t *testing.T) {
			s := published(t)
			x, err := s.exchange()
			must(t, err)
			files, err := x.repo.Kept(x.tip)
			must(t, err)
			files[carriedLedger] = []byte(ledger.Header + "\n")
			_, err = x.repo.Keep(t.Context(), stateRef, x.tip, "a colleague's", files)
			must(t, err)
			if change != nil {
				change(t, s)
			}
			if _, err = s.Pull(t.Context(), false); (err != nil) != (change != nil) {
				t.Errorf("pull: got error %v, want one: %t", err, change != nil)
			}
		})
	}
}

// A branch whose last commit differs from the passed one is not published.
func TestPublishRefusesAnotherTree(t *testing.T) {
	s := published(t)
	f, err := s.State()
	must(t, err)
	passed := build(t, s, "2")
	f.Phases["1"].Status, f.Phases["1"].SrcCommit = state.Passed, passed
	must(t, state.Save(s.Paths.State(), f))
	build(t, s, "not verified")
	_, err = s.Publish(t.Context(), 0)
	const want = "which has other files than commit "
	if err == nil || !strings.Contains(err.Error(), want+passed[:12]) {
		t.Fatalf("got %v, want %q", err, want)
	}
	if got := runGit(t, s.Paths.Root, "show", Branch(1)+":built"); got != "1" {
		t.Errorf("the branch has %q, want what was published before", got)
	}
	build(t, s, "2")
	if _, err := s.Publish(t.Context(), 0); err != nil {
		t.Errorf("got %v, want that the same files are published", err)
	}
}
