package guard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"abl/internal/child"
	"abl/orchestrator/workspace/ignore"
)

// excludes are the rules that stand in no .gitignore: the person's own, which
// core.excludesFile names, and those of the repository, which outrank them.
func excludes(ctx context.Context, root string) (*ignore.Rules, error) {
	mine, err := followed(personal(ctx, root))
	if err != nil {
		return nil, err
	}
	where := filepath.Join(top(root), ".git/info/exclude")
	if said, err := git(ctx, root, "rev-parse", "--git-path", "info/exclude"); err == nil {
		where = below(root, said) // of a linked worktree, or of the repository around the project
	}
	here, err := followed(where)
	return ignore.Exclude(mine).Below("", here), err
}

// personal is the file of the person's own excludes, "" for none.
func personal(ctx context.Context, root string) string {
	if said, err := git(ctx, root, "config", "--type=path", "--get", "core.excludesFile"); err == nil {
		return below(root, said)
	}
	home := os.Getenv("XDG_CONFIG_HOME")
	if home == "" && os.Getenv("HOME") != "" {
		home = filepath.Join(os.Getenv("HOME"), ".config")
	}
	if home == "" {
		return ""
	}
	return filepath.Join(home, "git/ignore")
}

// git is the answer of the person's own git, without its line end. Where there is
// none, git's defaults hold.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	out, err := child.Command(ctx, "git", append([]string{"-C", dir}, args...)...).Output()
	return strings.TrimSuffix(string(out), "\n"), err
}

// below makes a path of git's absolute; "" stays.
func below(dir, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// followed reads a file of rules that is the person's: unlike one in the tree it
// may be a link. What is not there has no rules.
func followed(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || err == nil && !info.Mode().IsRegular() {
		return nil, nil
	}
	var data []byte
	var f *os.File
	if err == nil {
		f, err = os.Open(path)
	}
	if err == nil {
		defer f.Close()
		data, err = io.ReadAll(io.LimitReader(f, maxRules+1))
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot tell what git ignores: %w", err)
	case len(data) > maxRules:
		return nil, fmt.Errorf("cannot tell what git ignores: %q is larger than %d bytes", path, maxRules)
	}
	return data, nil
}
