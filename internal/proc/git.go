package proc

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// Git returns a command of the user's git that only looks at the repository around dir. The
// repository may be a stranger's: git runs no watcher and no hook of it, opens no connection,
// fetches no missing object, writes nothing and asks nothing. Variables like GIT_DIR, which git
// sets for a hook, are dropped, since they may name another repository.
func Git(ctx context.Context, dir string, args ...string) *exec.Cmd {
	safe := []string{
		"--no-pager", "-C", dir, "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null",
		"-c", "safe.bareRepository=explicit",
	}
	cmd := Command(ctx, "git", append(safe, args...)...)
	cmd.Env = slices.DeleteFunc(cmd.Env, func(kv string) bool {
		return strings.HasPrefix(kv, "GIT_") && !strings.HasPrefix(kv, "GIT_CONFIG_") // the user's settings
	})
	cmd.Env = append(cmd.Env, "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0",
		"GIT_NO_LAZY_FETCH=1", // git before 2.39.4 ignores it, so:
		"GIT_ALLOW_PROTOCOL=") // an empty list; overrides protocol.*.allow of the repository
	return cmd
}

// gitTime is how long git may take to answer a question.
const gitTime = 10 * time.Second

// AskGit runs Git and returns what it prints on both outputs, without blanks around it. Where
// there is no repository it returns "".
func AskGit(ctx context.Context, dir string, args ...string) (said string, err error) {
	ctx, cancel := context.WithTimeout(ctx, gitTime)
	defer cancel()
	out, err := Git(ctx, dir, args...).CombinedOutput()
	if err != nil && strings.Contains(string(out), "not a git repository") {
		return "", nil
	}
	return strings.TrimSpace(string(out)), err
}
