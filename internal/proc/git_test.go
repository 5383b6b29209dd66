package proc

import (
	"strings"
	"testing"
)

// git finds the logins of git hosts, and neither a model's key nor another repository.
func TestGitRemote(t *testing.T) {
	for name, want := range map[string]bool{
		"GH_TOKEN": true, "GIT_ASKPASS": true, "GIT_SSH_COMMAND": true, "SSH_AUTH_SOCK": true,
		"GEMINI_API_KEY": false, "GIT_DIR": false, "GIT_INDEX_FILE": false,
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, "value-of-"+name)
			env := GitRemote(t.Context(), ".", "push").Env
			if got := strings.Contains(strings.Join(env, "\n"), name+"=value-of-"+name); got != want {
				t.Errorf("%s in git's environment: got %v, want %v", name, got, want)
			}
		})
	}
}

// A warning of git is not part of its output, and an error of git is returned.
func TestAskGit(t *testing.T) {
	dir := t.TempDir()
	if got, err := AskGit(t.Context(), dir, "rev-parse", "HEAD"); got != "" || err != nil {
		t.Errorf("outside of a repository: got %q, error %v, want neither", got, err)
	}
	for _, args := range [][]string{
		{"init", "-q"},
		{"-c", "user.name=P", "-c", "user.email=p@example.com", "commit", "-q", "--allow-empty", "-m", "one"},
	} {
		if out, err := Git(t.Context(), dir, args...).CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
	}
	head, err := AskGit(t.Context(), dir, "rev-parse", "HEAD")
	if err != nil || len(head) != 40 {
		t.Fatalf("HEAD: got %q, error %v, want a hash", head, err)
	}
	// git warns that the log of HEAD does not go back to that time.
	if got, err := AskGit(t.Context(), dir, "rev-parse", "HEAD@{1.year.ago}"); got != head || err != nil {
		t.Errorf("with a warning: got %q, error %v, want %q", got, err, head)
	}
	if got, err := AskGit(t.Context(), dir, "rev-parse", "missing"); !strings.Contains(got, "missing") || err == nil {
		t.Errorf("a missing revision: got %q, error %v, want git's message and an error", got, err)
	}
}
