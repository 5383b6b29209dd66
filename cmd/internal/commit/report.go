package commit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"abl/cmd/internal/cli"
	"abl/internal/ledger"
	"abl/orchestrator/codecommit"
)

// consistency is the workflow that reports and changes nothing.
func (s *session) consistency(ctx context.Context) (err error) {
	if s.project.Name == codecommit.V1 {
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
	in, err := s.project.ReportInputs()
	if err != nil {
		return err
	}
	return s.report(ctx, in, filepath.Join(s.project.Root, codecommit.ReportFile), s.ledger())
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
	s, err := inside(in, c.Root, c.Logs, c.Env)
	if err != nil {
		return err
	}
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

// inside is a session in an abl project, which has its keys in .env.
func inside(in *cli.Input, root, logs string, env map[string]string) (*session, error) {
	p, err := codecommit.ProfileOf(codecommit.V2)
	p.Keys, p.Models, p.Ignored = nil, "", false
	return &session{in: in, project: codecommit.Project{Self: "abl code-commit", Root: root, Profile: p, Logs: logs, Env: env}}, err
}

// Question is one that a command of abl has for a model.
type Question struct {
	Root, Logs, Workflow, Text string
	Replaces                   string            // the part of Text in whose place the answer is put, "" for none
	Env                        map[string]string // of .env
	Ledger                     *ledger.Ledger
}

// ErrMasked is a text to be replaced that the model would not see as it is: it
// would answer with the masks of the secrets.
var ErrMasked = errors.New("it holds a secret, which the model is not shown")

// Ask returns the answer. The flags are those of CheckFlags.
func (q Question) Ask(ctx context.Context, in *cli.Input) (string, error) {
	s, err := inside(in, q.Root, q.Logs, q.Env)
	if err != nil {
		return "", err
	}
	r := &codecommit.Run{Root: q.Root, Profile: s.project.Profile, Inputs: codecommit.Inputs{Query: q.Text}}
	if _, err := s.prepare(ctx, r); err != nil {
		return "", explained(err, "")
	}
	if r.Clean(q.Replaces) != q.Replaces {
		return "", ErrMasked
	}
	r.Book = q.Ledger
	if err := s.openLogs(r, "-"+q.Workflow); err != nil {
		return "", err
	}
	answer, err := r.Ask(ctx, q.Workflow, q.Text)
	return answer, explained(err, "what was asked and answered is in "+r.Logs.Path)
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
