package codecommit

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"abl/internal/proc"
)

// Ignored says which of some paths of a project git leaves out: by .gitignore files,
// by the repository's info/exclude, and by the person's own excludes. Whether a file
// is tracked makes no difference: what is ignored is not a model's business. No link
// may be on the way to a path.
func Ignored(ctx context.Context, root string, names ...string) (map[string]bool, error) {
	ignored := map[string]bool{}
	if len(names) == 0 {
		return ignored, nil
	}
	said, err := git(ctx, "./"+strings.Join(names, "\x00./"), "-C", root, "check-ignore", "--no-index", "-z", "--stdin") // a name that begins with a colon is none to git
	const none = 1
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == none) {
		return nil, err
	}
	for name := range strings.SplitSeq(said, "\x00") {
		ignored[strings.TrimPrefix(name, "./")] = true
	}
	return ignored, nil
}

// git is what the person's own git says.
func git(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := proc.Command(ctx, "git", args...)
	cmd.Env = append(cmd.Env, "LC_ALL=C")
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		err = fmt.Errorf("cannot ask git what it ignores, or shows as changed: %w", err)
	}
	return string(out), err
}
