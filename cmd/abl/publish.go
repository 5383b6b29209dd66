package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"abl/cmd/internal/exit"
	"abl/cmd/internal/phase"
	"abl/internal/audit"
	"abl/internal/hostfs"
	"abl/internal/state"
	"abl/orchestrator/report"
)

// summaryVar is where GitHub wants what a step has to say.
const summaryVar = "GITHUB_STEP_SUMMARY"

// checkJUnit sees to it, before anything is spent, that the file can be written,
// and lets it say that the run did not end: an older file must not pass for this
// run's, should abl be killed.
func checkJUnit(s *phase.Project, n int) error {
	path := s.In.String("junit")
	if path == "" {
		return nil
	}
	dir, err := state.Real(filepath.Dir(path))
	if err != nil {
		return exit.With(exit.Usage, fmt.Errorf("cannot write the JUnit file: %w", err), "make its directory first")
	}
	for _, work := range []string{s.Paths.Src, s.Paths.Tests} {
		if rel, err := filepath.Rel(work, dir); err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
			return exit.With(exit.Usage, fmt.Errorf("cannot write the JUnit file %q: %s is a role's directory", path, s.Paths.Rel(work)), "name a file elsewhere, such as .abl/reports/junit.xml")
		}
	}
	if fi, err := os.Lstat(path); err == nil && !fi.Mode().IsRegular() {
		return exit.With(exit.Usage, fmt.Errorf("cannot write the JUnit file: %q is there and no plain file", path), "name another file")
	}
	if err := writeJUnit(path, report.Run{Phase: n, Ended: &report.Ended{Code: exit.Bug, What: "abl was stopped before it could say how the run ended"}}); err != nil {
		return exit.With(exit.Usage, err, "name a file that can be written")
	}
	return nil
}

func writeJUnit(path string, r report.Run) error {
	data, err := report.JUnit(r)
	if err != nil {
		return err
	}
	if err := hostfs.Write(path, data, 0o644); err != nil {
		return fmt.Errorf("cannot write the JUnit file: %w", err)
	}
	return nil
}

// publish tells those who asked for it how a run of phase n ended. It never
// changes how that was, but for a run that went well and cannot be told of.
func publish(ctx context.Context, s *phase.Project, n int, ended error) error {
	file, page := s.In.String("junit"), os.Getenv(summaryVar)
	if file == "" && page == "" {
		return ended
	}
	r := runOf(ctx, s, n, ended)
	var err error
	if file != "" {
		err = writeJUnit(file, r)
	}
	if page != "" {
		if perr := appendTo(page, report.Markdown(r)); perr != nil {
			s.In.Warn(fmt.Sprintf("cannot write to %s: %v", summaryVar, perr))
		}
	}
	if ended == nil && err != nil {
		return exit.With(exit.Environment, err, "the phase itself is done: abl report shows it")
	}
	if err != nil {
		s.In.Warn(err)
	}
	return ended
}

// runOf is what there is to tell of a run of phase n. What stands there of an
// earlier round is not told with a run that came to no verdict.
func runOf(ctx context.Context, s *phase.Project, n int, ended error) report.Run {
	this, _ := s.Specs().Phase(n)
	r := report.Run{Phase: n, Title: this.Title}
	err := exit.Because(ctx, ended)
	code := exit.Code(err)
	verdict := code == exit.Passed || code == exit.Stuck || code == exit.Unverified
	if !verdict {
		r.Ended = &report.Ended{Code: code, What: s.In.Safe.Line(err.Error())}
	}
	last, found, rerr := audit.Last(s.Paths, n)
	if rerr == nil && found {
		rerr = s.In.Safe.Clean(&last)
	}
	f, serr := s.State()
	if serr != nil {
		f = &state.File{}
	}
	switch {
	case rerr != nil:
		s.In.Warn(rerr)
	case found && (verdict || f.Phase(n).Round == last.Round):
		r.Record = &last
	}
	if r.Record == nil && r.Ended == nil {
		r.Ended = &report.Ended{Code: code, What: "no audit record of it is kept"}
	}
	return r
}

// appendTo adds to a file that the person's CI names.
func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, text)
	return errors.Join(err, f.Close())
}
