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
