package main

import (
	"fmt"
	"io"
	"os"

	"abl/orchestrator"
	"abl/orchestrator/ledger"
	"abl/orchestrator/workspace"
	"abl/roles"
)

// tour shows what a demo left behind, and how to look at it.
func (s *session) tour(w io.Writer) error {
	for _, dir := range []string{s.project.Src, s.project.Tests} {
		if err := s.history(w, dir); err != nil {
			return err
		}
	}
	if err := s.refuted(w); err != nil {
		return err
	}
	totals := ledger.NewTotals(ledger.ByRole)
	if err := ledger.Open(s.project.Ledger()).Scan(totals.Add, func(int, string) {}); err != nil {
		return err
	}
	fmt.Fprintf(w, "\ntokens and dollars (.abl/logs/tokens.csv):\n%s", ledger.Table(ledger.ByRole, totals.Groups(ledger.ByRole), totals.Sum()))
	_, err := fmt.Fprintf(w, `
Look further:
  cd %s
  git -C src log --stat           what the Builder wrote; git -C .abl/tests log --stat the tests
  ls src/builder_reports .abl/tests/verifier_reports
  %[2]s report 1           what the verdict stands on
  %[2]s logs app           what the app printed while it was tested
  %[2]s run                the second phase
`, s.project.Root, program())
	return err
}

// program is how the person started abl.
func program() string {
	path, err := os.Executable()
	if err != nil {
		return "abl"
	}
	return path
}

// history prints the commits of a workspace, the newest first.
func (s *session) history(w io.Writer, dir string) error {
	repo, err := workspace.Open(dir, workspace.Options{})
	if err != nil {
		return err
	}
	all, err := repo.Log(10)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%s, a history of its own:\n", s.project.Rel(dir))
	for _, c := range all {
		fmt.Fprintf(w, "  %.7s  %s\n", c.Hash, s.in.Outlet.Line(c.Subject))
	}
	return nil
}

// refuted prints what the first Verifier found to fail, as the next Builder got it.
func (s *session) refuted(w io.Writer) error {
	var f orchestrator.Finding
	key := roles.Key(1, roles.Verifier, 1, 1)
	if there, err := roles.KeptFinding(s.project, key, &f); err != nil || !there {
		return err
	}
	fmt.Fprint(w, "\nfailed_specs.md of the first iteration:\n")
	for _, e := range f.Entries {
		fmt.Fprintf(w, "  SPEC: %s\n  INPUT: %s\n  OBSERVED: %s\n", s.in.Outlet.Line(e.Spec), s.in.Outlet.Line(e.Input), s.in.Outlet.Line(e.Observed))
	}
	return nil
}
