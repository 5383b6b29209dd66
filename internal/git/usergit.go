package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"abl/internal/proc"
)

// ErrNoGit means that the user's git is not installed.
var ErrNoGit = errors.New("cannot find the program git")

// run runs the user's git in the repository and returns its standard output. Hooks, the file system
// monitor, prompts and network connections are disabled (see proc.Git).
func (o *Origin) run(ctx context.Context, args ...string) (string, error) {
	out, err := output(proc.Git(ctx, o.dir, append([]string{"-c", "safe.directory=" + o.dir}, args...)...))
	return string(out), err
}

// output returns the standard output of a git command. An error contains git's last message.
func output(cmd *exec.Cmd) ([]byte, error) {
	var out bytes.Buffer
	cmd.Stdout = &out
	err := finished(cmd)
	return out.Bytes(), err
}

// maxGitError is the maximum size of git's messages in bytes.
const maxGitError = 4 << 10

// finished runs a git command. An error contains git's last message.
func finished(cmd *exec.Cmd) error {
	stderr := proc.Head{Max: maxGitError}
	cmd.Stderr = &stderr
	err := cmd.Run()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("%w: install git 2.30 or newer", ErrNoGit)
	case err == nil:
		return nil
	}
	lines := strings.Split(strings.TrimSpace(stderr.Kept.String()), "\n")
	return fmt.Errorf("git: %w: %s", err, lines[len(lines)-1])
}

// Branches returns the full names of the local and remote branches whose name begins with a prefix
// such as "abl/".
func (o *Origin) Branches(ctx context.Context, prefix string) ([]string, error) {
	out, err := o.run(ctx, "for-each-ref", "--format=%(refname)", "refs/heads/"+prefix+"*",
		"refs/remotes/*/"+prefix+"*")
	return strings.Fields(out), err
}
