package crash

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"abl/internal/git"
	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/internal/testing/play"
)

// userGit runs git in the source as the user does.
func userGit(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{
		"-C", filepath.Join(dir, "src"), "-c", "user.name=a", "-c", "user.email=a@b.example",
	}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("git %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// The user switches to another branch during a phase, while a call runs or between two
// iterations. abl notices before it commits to that branch, loses nothing of either branch, and
// resumes once the user has switched back.
func TestBranchSwitched(t *testing.T) {
	for name, away := range map[string][]string{
		"a new one":                     {"checkout", "-q", "-b", "mine"},
		"a branch with its own history": {"checkout", "-q", "--orphan", "mine"},
		"a detached HEAD":               {"checkout", "-q", "--detach"},
	} {
		for when, call := range map[string]string{"while a call runs": "p1-build-2.1", "between two iterations": ""} {
			t.Run(name+" "+when, func(t *testing.T) {
				t.Parallel()
				p := play.NewPlant(t)
				home, switched := "", false
				leave := func() {
					if !switched {
						switched, home = true, userGit(t, p.Dir, "symbolic-ref", "--short", "HEAD")
						userGit(t, p.Dir, away...)
					}
				}
				p.Worked = func(b sandbox.ContainerConfig) {
					if call != "" && b.Labels[sandbox.LabelCall] == call {
						leave()
					}
				}
				phase := play.Phase{Root: p.Dir, Engine: p.Engine, Out: state.Func(func(e state.Event) {
					if call == "" && e.Kind == state.Verdict {
						leave()
					}
				})}
				_, err := phase.Play(t.Context())
				if !errors.Is(err, git.ErrForeign) || !strings.Contains(err.Error(), "switch") {
					t.Fatalf("error of the phase: got %v, want %v with %q", err, git.ErrForeign, "switch")
				}
				if got := userGit(t, p.Dir, "log", "--all", "--format=%s"); got != "phase1/build/step-1" {
					t.Errorf("commits in the meantime: got %q, want phase1/build/step-1", got)
				}
				userGit(t, p.Dir, "checkout", "-q", home)
				if userGit(t, p.Dir, "branch", "--list", "mine") != "" {
					// No role can have created the branch, so abl asks about it until it is gone.
					userGit(t, p.Dir, "branch", "-D", "mine")
				}
				if r, err := phase.Play(t.Context()); err != nil || r.Status != state.Passed {
					t.Fatalf("after switching back: got status %s, error %v, want %s", r.Status, err, state.Passed)
				}
				if got := userGit(t, p.Dir, "log", "--reverse", "--format=%s",
					home); got != "phase1/build/step-1\nphase1/build/step-2" {
					t.Errorf("commits of %s: got %q, want phase1/build/step-1 and phase1/build/step-2", home, got)
				}
			})
		}
	}
}
