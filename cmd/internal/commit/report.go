package commit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"

	"abl/cmd/internal/cli"
	"abl/internal/ledger"
	"abl/orchestrator/codecommit"
)

// consistency runs the workflow that writes a report and changes nothing.
func (s *session) consistency(ctx context.Context) (err error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	in, err := s.project.ReportInputs()
	if err != nil {
		return err
	}
	return s.report(ctx, in, filepath.Join(s.project.Root, codecommit.ReportFile))
}

func (s *session) report(ctx context.Context, inputs codecommit.Inputs, path string) error {
	r := &codecommit.Run{Inputs: inputs}
	if err := s.prepare(r); err != nil {
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
		s.in.Say("the report is in %s, and by section in the .json next to it", path)
	}
	return s.finish(res, err)
}

// Asker asks a model a question for a command of abl. The command has the flags of FlagsOf.
type Asker struct {
	Root, Logs string
	Env        map[string]string // of .env
	Ledger     *ledger.Ledger
	Transport  http.RoundTripper // for requests to the model; nil for Go's default
}

func (a Asker) session(in *cli.Input) *session {
	p := codecommit.ProfileOf(codecommit.V2)
	p.Keys, p.Models = "", ""
	project := codecommit.Project{Self: "abl code-commit", Root: a.Root, Profile: p, Logs: a.Logs, Env: a.Env}
	return &session{in: in, project: project, ledger: a.Ledger, transport: a.Transport}
}

// Check is a report over the specs and the source of an abl project.
type Check struct {
	Asker
	Report string
	Query  string
	Specs  []string // files below Root
	Source string   // the folder of the implementation
	Files  []string // below Source
}

// Do asks the model for the report, and writes and prints it.
func (c Check) Do(ctx context.Context, in *cli.Input) error {
	s := c.session(in)
	code := ""
	secrets, _ := s.project.Secrets("", in.Safe.Hide)
	for _, from := range []struct {
		dir   string
		names []string
	}{{c.Root, c.Specs}, {c.Source, c.Files}} {
		text, left := codecommit.Collect(from.dir, from.names, secrets)
		code += text
		for _, why := range left {
			in.Say("left out: %s", why)
		}
	}
	return s.report(ctx, codecommit.Inputs{Query: c.Query, Codebase: code}, c.Report)
}

// ErrMasked is the error for a text with a secret that the answer is to replace: the model sees a mask
// instead of the secret, and would answer with it.
var ErrMasked = errors.New("it contains a secret, which the model does not see")

// Ask returns the answer to a question. replaces is the text that the answer will replace; it may be "".
func (a Asker) Ask(ctx context.Context, in *cli.Input, workflow, question, replaces string) (string, error) {
	s := a.session(in)
	if secrets, _ := s.project.Secrets("", in.Safe.Hide); secrets.Holds([]byte(replaces)) {
		return "", ErrMasked
	}
	r := &codecommit.Run{Inputs: codecommit.Inputs{Query: question}}
	if err := s.prepare(r); err != nil {
		return "", err
	}
	res, answer, err := r.Ask(ctx, workflow, question)
	return answer, kept(err, res.Logs)
}

// FlagsOf returns the flags of those names, which must contain model.
func FlagsOf(names ...string) []cli.Flag {
	all := slices.DeleteFunc(flags(), func(f cli.Flag) bool { return !slices.Contains(names, f.Name) })
	all[0].Usage = "model to use" // an abl project has no agent-config/models
	return all
}
