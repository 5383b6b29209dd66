package commit

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/money"
	"abl/internal/config"
	"abl/internal/ledger"
	"abl/internal/pricelist"
	"abl/internal/redact"
	"abl/orchestrator/codecommit"
	"abl/roles/model"
)

// session is one call of the program in one project.
type session struct {
	in      *cli.Input
	project codecommit.Project
	warned  []string // of .env
}

// open finds the project and the settings that all commands share.
func open(in *cli.Input, self string) (*session, error) {
	root, err := filepath.Abs(cmp.Or(in.String("project"), "."))
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	p := codecommit.Project{Self: self, Root: root, Logs: cmp.Or(in.String("log-dir"), "logs")}
	if err == nil {
		p.Profile, err = codecommit.ProfileOf(cmp.Or(in.String("protocol"), codecommit.V2))
	}
	if err != nil {
		return nil, exit.With(exit.Usage, err, "")
	}
	if !filepath.IsAbs(p.Logs) {
		p.Logs = filepath.Join(root, p.Logs)
	}
	if filepath.Clean(p.Logs) == root {
		return nil, cli.Usagef("--log-dir must not be the project's folder itself")
	}
	var warnings []string
	p.Env, warnings, err = config.ReadEnv(filepath.Join(root, ".env"))
	if _, gone := os.Lstat(filepath.Join(root, ".env")); err != nil && gone == nil {
		return nil, exit.With(exit.Usage, err, "")
	}
	secrets, _ := redact.Secrets(p.Env, true)
	in.Safe.Hide(secrets...)
	for _, w := range warnings {
		in.Warn(w)
	}
	return &session{in: in, project: p, warned: warnings}, nil
}

// lock keeps others from working in the project.
func (s *session) lock() (unlock func() error, err error) {
	unlock, restored, err := s.project.Lock()
	s.tellRestored(restored)
	return unlock, err
}

// safe refuses a project whose keys are on their way into the repository.
func (s *session) safe(ctx context.Context) error {
	files, err := s.project.Exposed(ctx)
	for _, file := range files {
		s.warnKey(file)
	}
	return err
}

// change is the workflow that changes code.
func (s *session) change(ctx context.Context) (err error) {
	limits, limit, err := s.limits()
	if err == nil {
		err = s.safe(ctx)
	}
	if err == nil && s.in.Bool("require-clean") {
		var n int
		if n, err = s.project.Changes(ctx); n > 0 {
			err = unclean(n)
		}
	}
	if err != nil {
		return err
	}
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	g, list, err := s.project.Guard()
	if err != nil {
		return err
	}
	r := &codecommit.Run{Root: s.project.Root, Profile: s.project.Profile, Guard: g, Limits: limits}
	if r.Inputs, err = s.project.ReadInputs(list); err == nil {
		err = s.project.Untouched(r.Inputs.Query, r.DryRun)
	}
	if err != nil {
		return err
	}
	secrets, err := s.prepare(ctx, r)
	if err != nil {
		return err
	}
	if !r.DryRun {
		done, err := s.builder(ctx, r, secrets, limit)
		if err != nil {
			return err
		}
		defer done()
	}
	if err := s.openLogs(r, s.project.Suffix); err != nil {
		return err
	}
	res, err := r.Commit(ctx)
	return s.finish(res, err)
}

// limits are the numbers among the flags.
func (s *session) limits() (l codecommit.Limits, build time.Duration, err error) {
	l = codecommit.Limits{Repairs: s.project.Repairs, Abort: s.in.String("on-parse-error") == "abort", DryRun: s.in.Bool("dry-run")}
	if s.in.Set("max-repairs") {
		const most = 100
		if l.Repairs, err = s.in.Int("max-repairs"); err == nil && (l.Repairs < 0 || l.Repairs > most) {
			err = cli.Usagef("--max-repairs must be 0 to %d, not %d", most, l.Repairs)
		}
	}
	if err == nil {
		build, err = duration(s.in, "build-timeout")
	}
	return l, build, err
}

// duration is a flag's value as a time.
func duration(in *cli.Input, name string) (time.Duration, error) {
	d, err := time.ParseDuration(in.String(name))
	if err != nil || d <= 0 {
		return 0, cli.Usagef("--%s must be a time such as 90s, 20m or 1h, not %q", name, in.String(name))
	}
	return d, nil
}

// prepare puts the model in place, and what takes its key out of everything.
func (s *session) prepare(ctx context.Context, r *codecommit.Run) (codecommit.Secrets, error) {
	var none codecommit.Secrets
	retries, err := s.in.Int("retries")
	if err == nil && retries < 0 {
		err = cli.Usagef("--retries must not be negative")
	}
	if err != nil {
		return none, err
	}
	patience, err := duration(s.in, "timeout")
	if err != nil {
		return none, err
	}
	name, say := s.in.String("model"), s.in.Say
	c, key, err := s.project.Client(ctx, name, model.Config{
		Retries: retries, Patience: patience, Sent: r.Sending,
		Trouble: func(err error, wait time.Duration) { say("%v; trying again in %s", err, wait) },
	}, s.warnKey)
	s.in.Safe.Hide(key.Value)
	if err != nil {
		return none, err
	}
	say("%s, with the key of %s", name, key.Where)
	secrets := s.project.Secrets(key.Value)
	r.Model, r.Clean, r.Holds = c, secrets.Clean, secrets.Hold
	r.Book, r.Price, r.Show = s.ledger(), price, s.show()
	if r.Clean(r.Inputs.Query) != r.Inputs.Query {
		s.in.Warn("the query holds a secret; the model is shown no more than its last two characters")
	}
	if r.Clean(r.Inputs.Codebase) != r.Inputs.Codebase {
		s.in.Warn("the codebase holds a secret; the model is shown no more than its last two characters")
	}
	return secrets, nil
}

func (s *session) openLogs(r *codecommit.Run, suffix string) (err error) {
	r.Logs, err = codecommit.NewFolder(s.project.Logs, time.Now(), suffix, r.Clean)
	if err == nil {
		s.in.Say("logs: %s", r.Logs.Path)
	}
	return err
}

// ledger is where calls are entered.
func (s *session) ledger() *ledger.Ledger {
	return ledger.Open(filepath.Join(s.project.Logs, "tokens.csv"))
}

// price is the cost_usd of a row by abl's own list.
func price(r ledger.Row) string {
	if list, err := pricelist.Default(); err == nil {
		if usd, known := money.CostOf(list, r); known {
			return usd.String()
		}
	}
	return ledger.Cost(r)
}
