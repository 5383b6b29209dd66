package proc

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// Git returns a command of the user's git that only reads the repository around dir. The repository
// may be untrusted: git runs no file system monitor and no hooks, opens no connections, fetches no
// missing objects, writes nothing and prompts for nothing. Variables such as GIT_DIR, which git
// sets for hooks, are removed, because they may name another repository.
func Git(ctx context.Context, dir string, args ...string) *exec.Cmd {
	safe := []string{
		"--no-pager", "-C", dir, "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null",
		"-c", "safe.bareRepository=explicit",
	}
	cmd := Command(ctx, "git", append(safe, args...)...)
	cmd.Env = slices.DeleteFunc(cmd.Env, func(kv string) bool {
		return strings.HasPrefix(kv, "GIT_") && !strings.HasPrefix(kv, "GIT_CONFIG_") // GIT_CONFIG_ has the user's settings
	})
	cmd.Env = append(cmd.Env, "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0",
		"GIT_NO_LAZY_FETCH=1", // git before 2.39.4 ignores this
		"GIT_ALLOW_PROTOCOL=") // allows no protocol, and overrides protocol.*.allow of the repository
	return cmd
}

// GitRemote returns a command of the user's git that exchanges commits with a remote of the
// repository around dir. It keeps the variables with which git, ssh and credential helpers log in,
// and removes those that name another repository. It runs no hooks and prompts for nothing.
func GitRemote(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := Command(ctx, "git", append([]string{"--no-pager", "-C", dir, "-c", "core.hooksPath=/dev/null"}, args...)...)
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if slices.Contains(gitLogins, name) && !slices.Contains(cmd.Env, kv) {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = slices.DeleteFunc(cmd.Env, func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(gitPlaces, name)
	})
	cmd.Env = append(cmd.Env, "LC_ALL=C", "GIT_TERMINAL_PROMPT=0")
	cmd.WaitDelay = time.Second // a credential helper may outlive it
	return cmd
}

// gitLogins are variables that logins to git hosts need, although Command may remove them as
// secrets.
var gitLogins = []string{"GIT_ASKPASS", "SSH_ASKPASS", "GH_TOKEN", "GITHUB_TOKEN", "GITLAB_TOKEN", "CI_JOB_TOKEN"}

// gitPlaces are the variables with which git tells a hook its repository.
var gitPlaces = []string{
	"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES",
	"GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_PREFIX", "GIT_QUARANTINE_PATH", "GIT_SHALLOW_FILE",
}

// gitTime is the maximum run time of AskGit.
const gitTime = 10 * time.Second

// AskGit runs Git and returns its trimmed output, standard output and error together: a warning may
// mean that the output is incomplete. Outside of a repository it returns "".
func AskGit(ctx context.Context, dir string, args ...string) (said string, err error) {
	ctx, cancel := context.WithTimeout(ctx, gitTime)
	defer cancel()
	out, err := Git(ctx, dir, args...).CombinedOutput()
	if err != nil && strings.Contains(string(out), "not a git repository") {
		return "", nil
	}
	return strings.TrimSpace(string(out)), err
}
