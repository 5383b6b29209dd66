package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/look"
	"abl/cmd/internal/project"
	"abl/orchestrator/report"
)

func publishCommand() cli.Command {
	var body bool
	return cli.Command{
		Name:  "publish",
		Group: cli.Running,
		Args:  "[N]",
		Usage: "publish the results as branches of your repository",
		Long: `Writes to the repository that the project works on: the branches abl/phaseN, the last
one also as refs/abl/source, the tests (refs/abl/tests), and state, audit records and
ledger (refs/abl/state). Your branch, index and files stay as they are. git push
--atomic origin abl/phase1 'refs/abl/*' then pushes all of it, and abl pull restores it
in another clone (docs/git.md).

Without N, the branch of a passed phase that was published and deleted stays deleted.

With --pr-body it publishes nothing and prints the text of a pull request for phase N.`,
		Examples: "abl publish\nabl publish 1 --pr-body | gh pr create --head abl/phase1 --title 'Phase 1' --body-file -",
		Flags: []cli.Flag{
			{Name: "pr-body", To: &body, Usage: "print contracts, verdict, evidence, cost and how to review them, as Markdown"},
			cli.JSONFlag(),
		},
		Run: project.Locked(func(ctx context.Context, s *project.Project) error {
			return runPublish(ctx, s, body)
		}),
	}
}

func runPublish(ctx context.Context, s *project.Project, body bool) error {
	n := 0
	if len(s.In.Args) > 0 {
		var err error
		if n, err = project.Number(s.In.Args[0]); err != nil {
			return err
		}
	}
	if body {
		return pullRequest(ctx, s, n)
	}
	all, err := s.Publish(ctx, n)
	if err != nil {
		return err
	}
	return s.In.Show(map[string]any{"refs": all}, func(w io.Writer) {
		var names []string
		for _, p := range all {
			fmt.Fprintf(w, "%s is at %.12s\n", p.Ref, p.Commit)
			if name, is := strings.CutPrefix(p.Ref, "refs/heads/"); is {
				names = append(names, name)
			}
		}
		s.In.Say("git push --atomic origin %s pushes it", strings.Join(append(names, "'refs/abl/*'"), " "))
	})
}

// pullRequest prints the text of a pull request for phase n.
func pullRequest(ctx context.Context, s *project.Project, n int) error {
	if n == 0 {
		return cli.WithHint("abl publish 1 --pr-body", "--pr-body needs the number of a phase")
	}
	if _, err := s.Adopted(); err != nil {
		return err
	}
	r, branch := look.RunOf(ctx, s, n, nil), s.PublishedBranch(n)
	if r.Record == nil {
		return cli.WithHint(fmt.Sprintf("abl phase %d writes one with each verdict", n),
			"phase %d has no audit record yet", n)
	}
	fmt.Fprint(s.In.Stdout, report.Markdown(r))
	fmt.Fprintf(s.In.Stdout, "To review it:\n\n```sh\ngit fetch origin %s 'refs/abl/*:refs/abl/*'\ngit diff HEAD...origin/%s\nabl pull && abl report %d\n```\n", branch, branch, n)
	return nil
}

func pullCommand() cli.Command {
	var theirs bool
	return cli.Command{
		Name:  "pull",
		Group: cli.Running,
		Usage: "restore state that was published in your repository",
		Long: `Restores phases, tests, audit records and costs from refs/abl/* of the repository that
the project works on. git fetch origin 'refs/abl/*:refs/abl/*' fetches these refs. A
phase that passed there has passed here too, without a call. In a fresh clone, abl status
and abl phase pull automatically.

If both the local and the published state have changes, abl pull fails and changes
nothing. --theirs moves the local state to a folder in .abl and restores the published
one.`,
		Examples: "git fetch origin 'refs/heads/abl/*:refs/remotes/origin/abl/*' 'refs/abl/*:refs/abl/*' && abl pull",
		Flags:    []cli.Flag{{Name: "theirs", To: &theirs, Usage: "replace the local state, and keep a copy in .abl"}},
		Run: project.Locked(func(ctx context.Context, s *project.Project) error {
			text, err := s.Pull(ctx, theirs)
			if err == nil {
				fmt.Fprintln(s.In.Stdout, text)
			}
			return err
		}),
	}
}
