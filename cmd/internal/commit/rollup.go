package commit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"abl/internal/hostfs"
	"abl/orchestrator/codecommit"
	"abl/orchestrator/codecommit/guard"
)

// rollup writes the code of the project where the next run looks for it.
func (s *session) rollup(ctx context.Context) (err error) {
	if err := s.safe(ctx); err != nil {
		return err
	}
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	g, err := guard.New(ctx, s.root, "")
	if err != nil {
		return err
	}
	_, logs := s.logDir()
	p := s.profile
	roller := codecommit.Roller{Root: s.root, Ignored: g.Ignored, Clean: s.cleaner(), Without: []string{codecommit.ConfigDir, "logs", logs, "target", p.Stage}}
	if p.Name == codecommit.V1 {
		roller.Without = append(roller.Without, p.Query, p.Codebase, p.System, p.UserOutput)
	}
	r, err := roller.Roll()
	if err != nil {
		return fmt.Errorf("cannot collect the code: %w", err)
	}
	r.Path = p.Codebase
	const perm = 0o644
	if err := os.MkdirAll(filepath.Dir(filepath.Join(s.root, r.Path)), 0o755); err != nil {
		return err
	}
	if err := hostfs.Write(filepath.Join(s.root, r.Path), []byte(r.Text), perm); err != nil {
		return err
	}
	if s.in.Bool("json") {
		return s.in.JSON(r)
	}
	s.tellRollup(r)
	return nil
}

// tellRollup says what went in, the largest first, and what did not.
func (s *session) tellRollup(r codecommit.Rollup) {
	const most = 10
	out := s.in.Stdout
	fmt.Fprintf(out, "%s: %d files, %d bytes, about %d tokens\n", r.Path, len(r.Files), r.Bytes, r.Tokens)
	files := slices.Clone(r.Files)
	slices.SortStableFunc(files, func(a, b codecommit.Rolled) int { return b.Tokens - a.Tokens })
	for _, f := range files[:min(len(files), most)] {
		fmt.Fprintf(out, "%8d  %s\n", f.Tokens, s.in.Outlet.Line(f.Path))
	}
	if more := len(files) - most; more > 0 {
		fmt.Fprintf(out, "          and %d smaller ones\n", more)
	}
	for _, f := range r.Skipped {
		fmt.Fprintf(out, "left out  %s: %s\n", s.in.Outlet.Line(f.Path), f.Why)
	}
}
