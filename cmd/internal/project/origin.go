package project

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"abl/cmd/internal/exit"
	"abl/internal/git"
	"abl/internal/hostfs"
	"abl/internal/state"
	"abl/roles"
)

// Origin opens the user's repository, of which the Builder's workspace is a clone. ok is false if the
// project has no such repository.
func (s Folder) Origin() (o *git.Origin, ok bool, err error) {
	if s.Conf.Source.Repo == "" {
		return nil, false, nil
	}
	if o, err = git.OpenOrigin(filepath.Join(s.Paths.Root, s.Conf.Source.Repo)); err != nil {
		code := exit.Person
		if errors.Is(err, git.ErrElsewhere) {
			code = exit.Usage
		}
		return nil, false, exit.With(code, err, "source.repo in "+s.Conf.File+" names the repository")
	}
	return o, true, nil
}

// withheld returns the paths of the user's repository that the Builder's clone leaves out: abl's files,
// the Verifier's prompt, .env, run reports and adopt.exclude.
func withheld(s Folder) []string {
	at, _ := filepath.Rel(filepath.Join(s.Paths.Root, s.Conf.Source.Repo), s.Paths.Root) // both are absolute
	own := []string{state.Dir, ".env", "prompts/builder.md", "prompts/verifier.md"}
	all := slices.Clone(s.Conf.Adopt.Exclude)
	for _, name := range own {
		all = append(all, filepath.Join(at, name))
	}
	return append(all, filepath.Join(s.Conf.Source.Dir, roles.Builder.Reports))
}

// SourceOptions returns the options for opening the Builder's workspace.
func (s Folder) SourceOptions() git.Options {
	if s.Conf.Source.Repo == "" {
		return git.Options{}
	}
	return git.Options{Clone: true, Without: withheld(s)}
}

// Branch returns the branch of a phase in the clone.
func Branch(n int) string { return fmt.Sprintf("abl/phase%d", n) }

// prefix returns the prefix of published branches.
func (s Folder) prefix() string { return cmp.Or(s.Conf.Publish.Prefix, git.BranchPrefix) }

// PublishedBranch returns the branch of a phase in the user's repository.
func (s Folder) PublishedBranch(n int) string { return fmt.Sprintf("%sphase%d", s.prefix(), n) }

// fetchRefs returns the command that fetches all published refs.
func (s Folder) fetchRefs() string {
	at := s.prefix() + "*"
	return fmt.Sprintf("git fetch origin 'refs/heads/%[1]s:refs/remotes/origin/%[1]s' 'refs/abl/*:refs/abl/*'", at)
}

// Adopted returns the repository that the project works on. It fails if the project has a separate source.
func (s *Project) Adopted() (*git.Origin, error) {
	repo, adopts, err := s.Origin()
	if err != nil || adopts {
		return repo, err
	}
	hint := fmt.Sprintf("set source.repo in .abl/config.yaml, or push the source with git -C %s push",
		s.Paths.Rel(s.Paths.Src))
	return nil, exit.With(exit.Usage,
		errors.New("this project does not work on a repository of yours: its source is a separate one"), hint)
}

// isRepository reports whether a workspace has a repository yet.
func isRepository(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, ".git"))
	return err == nil
}

// Draft returns a new empty folder next to a workspace, for a clone that replaces the workspace.
func (s Folder) Draft(dir string) (string, error) {
	dir += ".new"
	err := hostfs.Remove(filepath.Dir(dir), filepath.Base(dir))
	return dir, errors.Join(err, hostfs.MkdirAll(s.Paths.Root, s.Paths.Rel(dir)))
}

// WorkspaceFiles returns the files of a workspace: those that git lists if it is a repository. If the
// Builder's clone does not exist yet, it returns the files that the clone will have.
func (s Folder) WorkspaceFiles(ctx context.Context, dir string, most int) (names []string, err error) {
	var o git.Options
	if dir == s.Paths.Src {
		o = s.SourceOptions()
	}
	if _, err := os.Lstat(filepath.Join(dir, ".git", "HEAD")); err == nil {
		repo, err := git.Open(dir, o)
		if err != nil {
			return nil, err
		}
		return repo.Files(ctx, most)
	}
	if o.Clone {
		from, _, err := s.Origin()
		if err != nil {
			return nil, err
		}
		return from.Files(o.Without, most)
	}
	err = hostfs.Walk(dir, ".git", func(e hostfs.Entry) error {
		if e.Kind() == syscall.S_IFREG {
			names = append(names, e.Path())
		}
		return nil
	})
	if errors.Is(err, hostfs.ErrAbsent) {
		err = nil
	}
	slices.Sort(names)
	return names, err
}
