package commit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"abl/cmd/internal/exit"
	"abl/internal/child"
	"abl/orchestrator/codecommit"
	"abl/orchestrator/codecommit/guard"
)

// safe refuses a project whose keys are on their way into the repository.
func (s *session) safe(ctx context.Context) error {
	if !s.profile.Ignored {
		return s.warnKeys(ctx, slices.Sorted(maps.Values(s.profile.Keys))...)
	}
	err := codecommit.CheckIgnored(s.root)
	var wrong *codecommit.Unignored
	if errors.As(err, &wrong) {
		return exit.With(exit.Usage, err, "add a line /agent-config to the end of .gitignore; "+s.self+" init does")
	}
	return err
}

// warnKeys warns of files with a key that git does not leave out.
func (s *session) warnKeys(ctx context.Context, files ...string) error {
	g, err := guard.New(ctx, s.root, "")
	if err != nil {
		return exit.With(exit.Usage, err, "")
	}
	for _, file := range files {
		if exists(filepath.Join(s.root, file)) && !g.Ignored(file, false) {
			s.in.Warn(file + " is not ignored by git: add it to .gitignore before it is committed")
		}
	}
	return nil
}

// clean refuses a tree with changes of the person's own.
func (s *session) clean(ctx context.Context) error {
	cmd := child.Command(ctx, "git", "-C", s.root, "status", "--porcelain", "--", ".")
	out, err := cmd.CombinedOutput()
	switch {
	case err != nil:
		return exit.With(exit.Environment, fmt.Errorf("cannot ask git for its status: %w: %s", err, strings.TrimSpace(string(out))), "")
	case len(out) > 0:
		n := strings.Count(string(out), "\n")
		return exit.With(exit.Person, fmt.Errorf("git status shows %d changes, and --require-clean was given", n), "commit or stash them first")
	}
	return nil
}

// input says what to do about a file that is missing.
func (s *session) input(err error) error {
	var missing *codecommit.Missing
	if !errors.As(err, &missing) {
		return exit.With(exit.Usage, err, "")
	}
	roll, do := s.self+" --rollup", "write what you want into it; "+s.self+" init makes the files"
	if s.profile.Name == codecommit.V1 {
		roll, do = s.self+" --protocol v1 --rollup", "write into it what is to be said to the model"
	}
	if missing.Path == s.profile.Codebase {
		do = "make it with " + roll + ", or with a script of your own"
	}
	return exit.With(exit.Usage, err, do)
}
