package commit

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"abl/cmd/internal/cli"
	"abl/orchestrator/codecommit"
	"abl/orchestrator/ledger"
)

// consistency is the workflow that reports and changes nothing.
func (s *session) consistency(ctx context.Context) error {
	if s.project.Name == codecommit.V1 {
		return cli.Usagef("the consistency report belongs to --protocol v2")
	}
	if err := s.safe(ctx); err != nil {
		return err
	}
	return s.locked(func() error {
		in, err := s.project.ReportInputs()
		if err != nil {
			return err
		}
		return s.report(ctx, in, filepath.Join(s.project.Root, codecommit.ReportFile), s.ledger())
	})
}

func (s *session) report(ctx context.Context, inputs codecommit.Inputs, path string, book *ledger.Ledger) error {
	r := &codecommit.Run{Root: s.project.Root, Profile: s.project.Profile, Inputs: inputs}
	if _, err := s.prepare(ctx, r); err != nil {
		return err
	}
	r.Book = book
	if err := s.openLogs(r, "-consistency-report"); err != nil {
		return err
	}
	res, text, err := r.Consistency(ctx, path)
	if err == nil {
		if len(res.Missing) > 0 {
			s.in.Warn(fmt.Sprintf("the report lacks %d of its 5 sections: %q", len(res.Missing), res.Missing))
		}
		if !s.in.Bool("json") {
			fmt.Fprint(s.in.Stdout, text)
		}
		s.in.Say("the report is in %s, by section in the .json beside it", path)
	}
	return s.finish(res, err)
}

// Check is a report over the specs and the source of an abl project.
type Check struct {
	Root, Logs, Report string
	Env                map[string]string // of .env
	Ledger             *ledger.Ledger
	Query              string
	Specs              []string // files below Root
	Source             string   // the folder of the implementation
	Files              []string // below Source
}

// Do asks for the report. The flags are those of CheckFlags.
func (c Check) Do(ctx context.Context, in *cli.Input) error {
	p, err := codecommit.ProfileOf(codecommit.V2)
	if err != nil {
		return err
	}
	p.Keys, p.Models, p.Ignored = nil, "", false // an abl project has its keys in .env
	s := &session{in: in, project: codecommit.Project{Self: "abl code-commit", Root: c.Root, Profile: p, Logs: c.Logs, Env: c.Env}}
	clean := s.project.Secrets("").Clean
	specs, left, err := codecommit.Collect(c.Root, c.Specs, clean)
	if err != nil {
		return fmt.Errorf("cannot collect the specs: %w", err)
	}
	source, more, err := codecommit.Collect(c.Source, c.Files, clean)
	if err != nil {
		return fmt.Errorf("cannot collect the source: %w", err)
	}
	for _, text := range append(left, more...) {
		in.Say("left out: %s", text)
	}
	if err := os.MkdirAll(filepath.Dir(c.Report), 0o755); err != nil {
		return err
	}
	return explained(s.report(ctx, codecommit.Inputs{Query: c.Query, Codebase: specs + source}, c.Report, c.Ledger), "")
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
