package commit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/internal/hostfs"
	"abl/orchestrator/codecommit"
	"abl/orchestrator/codecommit/guard"
	"abl/orchestrator/ledger"
)

// reportFile is where a report is left.
const reportFile = codecommit.ConfigDir + "/consistency-report.txt"

// consistency is the workflow that reports and changes nothing.
func (s *session) consistency(ctx context.Context) (err error) {
	if s.profile.Name == codecommit.V1 {
		return cli.Usagef("the consistency report belongs to --protocol v2")
	}
	if err := s.safe(ctx); err != nil {
		return err
	}
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	query, err := s.reportQuery()
	if err != nil {
		return err
	}
	const most = 256 << 20
	code, err := hostfs.Read(s.root, s.profile.Codebase, most)
	if errors.Is(err, hostfs.ErrAbsent) {
		return s.input(&codecommit.Missing{Path: s.profile.Codebase, For: "the code rollup"})
	}
	if err != nil {
		return exit.With(exit.Usage, err, "")
	}
	return s.report(ctx, query, hostfs.Text(code), filepath.Join(s.root, reportFile), s.ledger())
}

// reportQuery is what the person asks about, if anything.
func (s *session) reportQuery() (string, error) {
	const most = 8 << 20
	for _, name := range []string{codecommit.ConfigDir + "/consistency-query.txt", s.profile.Query} {
		data, err := hostfs.Read(s.root, name, most)
		if query := hostfs.Text(data); err == nil && query != firstQuery {
			return query, nil
		}
		if err == nil {
			continue // nobody has written into it yet
		}
		if !errors.Is(err, hostfs.ErrAbsent) {
			return "", exit.With(exit.Usage, err, "")
		}
	}
	return "", nil
}

func (s *session) report(ctx context.Context, query, code, path string, book *ledger.Ledger) error {
	r := &codecommit.Run{Root: s.root, Profile: s.profile, Book: book, Price: price, Show: s.show(), Inputs: codecommit.Inputs{Query: query, Codebase: code}}
	if err := s.prepare(ctx, r); err != nil {
		return err
	}
	if err := s.openLogs(r, "-consistency-report"); err != nil {
		return err
	}
	res, text, err := r.Consistency(ctx, query, code, path)
	if err == nil && len(res.Missing) > 0 {
		s.in.Warn(fmt.Sprintf("the report lacks %d of its 5 sections: %q", len(res.Missing), res.Missing))
	}
	if err == nil && !s.in.Bool("json") {
		fmt.Fprint(s.in.Stdout, text)
	}
	if err == nil {
		s.say("the report is in " + path + ", by section in the .json beside it")
	}
	return s.finish(res, err)
}

// Check is a report over the specs and the source of an abl project.
type Check struct {
	Root, Logs, Report string
	Env                map[string]string // of .env
	Ledger             *ledger.Ledger
	Query              string
	Specs              []string // files and folders below Root
	Source             string   // a folder with a repository of its own
}

// Do asks for the report. The flags are those of CheckFlags.
func (c Check) Do(ctx context.Context, in *cli.Input) error {
	p, err := codecommit.ProfileOf(codecommit.V2)
	if err != nil {
		return err
	}
	p.Keys, p.Models, p.Ignored = nil, "", false // an abl project has its keys in .env
	s := &session{in: in, self: "abl code-commit", began: time.Now(), root: c.Root, profile: p, logs: c.Logs, env: c.Env}
	specs, err := codecommit.Roller{Root: c.Root, Clean: s.cleaner()}.Roll(c.Specs...)
	if err != nil {
		return fmt.Errorf("cannot collect the specs: %w", err)
	}
	ignored, err := guard.IgnoredIn(c.Source)
	if err != nil {
		return err
	}
	source, err := codecommit.Roller{Root: c.Source, Ignored: ignored, Clean: s.cleaner()}.Roll()
	if err != nil {
		return fmt.Errorf("cannot collect the source: %w", err)
	}
	for _, f := range append(specs.Skipped, source.Skipped...) {
		s.say("left out: " + f.Path + ": " + f.Why)
	}
	if err := os.MkdirAll(filepath.Dir(c.Report), 0o755); err != nil {
		return err
	}
	return s.report(ctx, c.Query, specs.Text+source.Text, c.Report, c.Ledger)
}

// CheckFlags are the flags of a command that calls Check.
func CheckFlags() []cli.Flag {
	var some []cli.Flag
	for _, f := range flags() {
		switch f.Name {
		case "model":
			f.Open, f.Usage = false, "who is asked" // an abl project lists no others
			some = append(some, f)
		case "timeout", "retries", "json":
			some = append(some, f)
		}
	}
	return some
}
