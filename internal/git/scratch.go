package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"abl/internal/git/gitdir"
	"abl/internal/hostfs"
	"abl/internal/proc"

	"github.com/go-git/go-git/v5/plumbing"
)

// scratch is an empty bare repository that borrows the objects of other repositories. The user's
// git runs there with default settings, because the settings, attributes and hooks of a workspace
// are hostile.
type scratch struct {
	dir  string
	work string // work tree for git before 2.38
}

// newScratch creates a scratch repository in the .git directory of a workspace. It borrows the objects
// of the given repositories.
func newScratch(ctx context.Context, in gitdir.Dir, from ...*repository) (*scratch, error) {
	top, err := in.TempDir()
	if err != nil {
		return nil, err
	}
	s := &scratch{dir: filepath.Join(top, "git"), work: filepath.Join(top, "work")}
	if err := s.borrow(ctx, from); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// borrow initializes the repository with the objects of others and with the end of a shallow history.
func (s *scratch) borrow(ctx context.Context, from []*repository) error {
	objects := ""
	for _, r := range from {
		if err := r.git.Plain(); err != nil {
			return err
		}
		path, err := filepath.Abs(r.git.Join("objects"))
		if err != nil {
			return err
		}
		if strings.Contains(path, "\n") {
			return fmt.Errorf("cannot read %q: its path contains a line break", path)
		}
		objects += path + "\n"
	}
	// The user may have deepened the history after the clone.
	shallow, err := hostfs.Read(from[0].git.Path, "shallow", maxSteering)
	if err != nil && !errors.Is(err, hostfs.ErrAbsent) {
		return err
	}
	if _, err := s.run(ctx, "init", "-q", "--bare", "--template=", s.dir); err != nil {
		return err
	}
	err = errors.Join(os.Mkdir(s.work, 0o700),
		hostfs.Write(filepath.Join(s.dir, "objects/info/alternates"), []byte(objects), 0o600))
	if err == nil && len(shallow) > 0 {
		err = hostfs.Write(filepath.Join(s.dir, "shallow"), shallow, 0o600)
	}
	return err
}

func (s *scratch) close() error { return os.RemoveAll(filepath.Dir(s.dir)) }

// command returns a command of the user's git in the scratch repository.
func (s *scratch) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := proc.Git(ctx, filepath.Dir(s.dir), args...)
	cmd.Env = append(cmd.Env, "GIT_DIR="+s.dir, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_COUNT=0",
		"GIT_CONFIG_PARAMETERS=", "GIT_ATTR_NOSYSTEM=1", "GIT_NO_REPLACE_OBJECTS=1", "XDG_CONFIG_HOME=/dev/null",
		"GIT_AUTHOR_NAME=abl", "GIT_AUTHOR_EMAIL=abl@localhost", "GIT_COMMITTER_NAME=abl",
		"GIT_COMMITTER_EMAIL=abl@localhost")
	return cmd
}

func (s *scratch) run(ctx context.Context, args ...string) (string, error) {
	out, err := output(s.command(ctx, args...))
	return string(out), err
}

// made returns the objects that git wrote to the scratch repository.
func (s *scratch) made() (all []plumbing.Hash, err error) {
	err = hostfs.Walk(filepath.Join(s.dir, "objects"), "", func(e hostfs.Entry) error {
		if hash := strings.ReplaceAll(e.Path(), "/", ""); plumbing.IsHash(hash) {
			all = append(all, plumbing.NewHash(hash))
		}
		return nil
	})
	return all, err
}

// mergeTree merges two commits. It returns the resulting tree, and the conflicting paths if there
// are any. It disables the detection of renamed directories, which could move a file from an
// omitted path of a clone to another one.
func (s *scratch) mergeTree(ctx context.Context, ours, theirs string) (tree string, conflicts []string, err error) {
	attributes, err := output(s.command(ctx, "cat-file", "blob", ours+":.gitattributes"))
	if err == nil { // for attributes such as merge=union; custom drivers are not defined here
		err = errors.Join(os.MkdirAll(filepath.Join(s.dir, "info"), 0o700),
			hostfs.Write(filepath.Join(s.dir, "info/attributes"), attributes, 0o600))
	} else if _, exited := errors.AsType[*exec.ExitError](err); exited { // no such file
		err = nil
	}
	if err != nil {
		return "", nil, err
	}
	if since, err := gitSince(ctx, 2, 38); err != nil || !since {
		if err != nil {
			return "", nil, err
		}
		return s.mergeInWorkTree(ctx, ours, theirs)
	}
	cmd := s.command(ctx, "-c", "merge.directoryRenames=false", "merge-tree", "--write-tree", "-z", "--name-only",
		"--no-messages", ours, theirs)
	out, err := output(cmd)
	if exited, is := errors.AsType[*exec.ExitError](err); is && exited.ExitCode() == 1 {
		err = nil
	}
	all := strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
	if err == nil && !plumbing.IsHash(all[0]) {
		err = fmt.Errorf("git merge-tree printed %.60q, want a tree", out)
	}
	return all[0], all[1:], err
}

// mergeInWorkTree is mergeTree for git before 2.38, which can merge only in a work tree.
func (s *scratch) mergeInWorkTree(ctx context.Context,
	ours, theirs string) (tree string, conflicts []string, err error) {
	at := func(args ...string) (string, error) {
		safe := []string{"-c", "core.symlinks=false", "-c", "core.protectNTFS=false", "-c",
			"merge.directoryRenames=false"}
		out, err := output(s.inWorkTree(ctx, append(safe, args...)...))
		return string(out), err
	}
	if _, err := at("checkout", "-q", "--detach", ours); err != nil {
		return "", nil, err
	}
	_, merr := at("merge", "-q", "--no-commit", "--no-ff", "--no-verify", theirs)
	left, err := at("diff", "--name-only", "--diff-filter=U", "-z")
	if err != nil {
		return "", nil, err
	}
	if left != "" {
		return "", strings.Split(strings.TrimRight(left, "\x00"), "\x00"), nil
	}
	if merr != nil {
		return "", nil, merr
	}
	tree, err = at("write-tree")
	return strings.TrimSpace(tree), nil, err
}

// gitSince reports whether the user's git is at least this version.
func gitSince(ctx context.Context, major, minor int) (bool, error) {
	v, err := Version(ctx)
	return slices.Compare(v, []int{major, minor}) >= 0, err
}

// Version returns the version of the user's git.
func Version(ctx context.Context) (all []int, err error) {
	cmd := proc.Command(ctx, "git", "--version")
	out, err := output(cmd)
	if err != nil {
		return nil, err
	}
	var major, minor, patch int
	n, _ := fmt.Fscanf(strings.NewReader(string(out)), "git version %d.%d.%d", &major, &minor, &patch)
	if n < 2 {
		return nil, fmt.Errorf("git --version printed %.60q, want a version", out)
	}
	return []int{major, minor, patch}[:n], nil
}
