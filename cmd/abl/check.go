package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/commit"
	"abl/cmd/internal/phase"
	"abl/internal/git"
	"abl/internal/hostfs"
	"abl/internal/ledger"
	"abl/internal/state"
)

func checkCommand() cli.Command {
	return cli.Command{
		Name: "check", Group: cli.Looking, Usage: "have a model report on specs and source that do not fit together",
		Long: `Shows a model the project's description, its specs and its source, and asks for a
report in five sections: where the specs disagree with themselves, where the
source disagrees with them, mistakes in either, and what else is worth saying.
The report is printed and kept in .abl/reports/consistency-report.txt, by section
in the .json beside it. Nothing is changed, and no verdict depends on it: it is
the opinion of one model that has run nothing.`,
		Examples: "abl check\nabl check --model gpt-5 --json",
		Codes:    commit.Codes(),
		Flags:    commit.AskFlags(),
		Run:      phase.Locked(runCheck),
	}
}

// checkQuery tells the model which files are which.
const checkQuery = `This project is built in phases. Its user specification is project.md and the
files in specs/, one a phase, whose contracts are lines of the form
ACTION -> EXPECTED RESULT. They come first in the codebase. All other files are
the implementation.
`

func runCheck(ctx context.Context, s *phase.Project) error {
	in := s.In
	p := s.Paths
	dir := filepath.Join(p.Root, state.Dir)
	specs, err := hostfs.List(dir, "specs", 10_000)
	if err != nil {
		return err
	}
	source, err := sourceFiles(ctx, p.Src)
	if err != nil {
		return err
	}
	c := commit.Check{
		Asker:  commit.Asker{Root: dir, Logs: filepath.Join(p.Logs(), "check"), Env: s.Conf.Dotenv, Ledger: ledger.Open(p.Ledger())},
		Report: filepath.Join(p.Reports(), "consistency-report.txt"), Query: checkQuery, Specs: []string{"project.md"}, Source: p.Src, Files: source,
	}
	for _, f := range specs {
		c.Specs = append(c.Specs, "specs/"+f.Name)
	}
	return c.Do(ctx, in)
}

// sourceFiles lists a workspace, as git does where there is a repository already.
func sourceFiles(ctx context.Context, dir string) (names []string, err error) {
	if _, err := os.Lstat(filepath.Join(dir, ".git", "HEAD")); err == nil {
		repo, err := git.Open(dir, git.Options{})
		if err != nil {
			return nil, err
		}
		const most = 50_000
		return repo.Files(ctx, most)
	}
	err = hostfs.Walk(dir, ".git", func(e hostfs.Entry) error {
		if e.Kind() == syscall.S_IFREG {
			names = append(names, e.Path())
		}
		return nil
	})
	if errors.Is(err, hostfs.ErrAbsent) { // nothing is built yet
		err = nil
	}
	slices.Sort(names)
	return names, err
}
