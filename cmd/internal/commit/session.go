package commit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/money"
	"abl/internal/config"
	"abl/internal/hostfs"
	"abl/internal/ledger"
	"abl/internal/pricelist"
	"abl/internal/proc"
	"abl/internal/redact"
	"abl/internal/state"
	"abl/orchestrator/codecommit"
	"abl/roles/environment"
	"abl/roles/model"
)

// session is one call of the program in one project.
type session struct {
	in      *cli.Input
	project codecommit.Project
	ledger  *ledger.Ledger
	warned  []string           // of .env
	build   *redact.SafeWriter // shows what a build prints
}

// open finds the project and the settings that all commands share.
func open(in *cli.Input, self string) (*session, error) {
	root, err := state.Real(cmp.Or(in.String("project"), "."))
	if err != nil {
		return nil, exit.With(exit.Usage, err, "")
	}
	p := codecommit.Project{Self: self, Root: root, Profile: codecommit.ProfileOf(in.String("protocol"))}
	p.Logs = environment.Path(root, cmp.Or(in.String("log-dir"), "logs"))
	if filepath.Clean(p.Logs) == root {
		return nil, cli.Usagef("--log-dir must not be the project's folder itself")
	}
	var warnings []string
	p.Env, warnings, err = config.ReadEnv(filepath.Join(root, ".env"))
	if err != nil && !errors.Is(err, hostfs.ErrAbsent) {
		return nil, exit.With(exit.Usage, err, "")
	}
	secrets, _ := redact.Secrets(p.Env, true)
	in.Safe.Hide(secrets...)
	for _, w := range warnings {
		in.Warn(w)
	}
	return &session{in: in, project: p, ledger: ledger.Open(filepath.Join(p.Logs, "tokens.csv")), warned: warnings}, nil
}

// lock keeps others from working in the project, unless its keys are on their way into
// the repository.
func (s *session) lock(ctx context.Context) (unlock func() error, err error) {
	files, err := s.project.Exposed(ctx)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		s.in.Warn(file + " is not ignored by git: add it to .gitignore before it is committed")
	}
	if s.in.Bool("require-clean") {
		n, err := s.project.Changes(ctx)
		if err == nil && n > 0 {
			err = exit.With(exit.Person, fmt.Errorf("git status shows %d changes, and --require-clean was given", n), "commit or stash them first")
		}
		if err != nil {
			return nil, err
		}
	}
	unlock, restored, err := s.project.Lock()
	tellRestored(s.in, restored)
	return unlock, err
}

// change is the workflow that changes code.
func (s *session) change(ctx context.Context) (err error) {
	r := &codecommit.Run{Abort: s.in.String("on-parse-error") == "abort", DryRun: s.in.Bool("dry-run"), Repairs: s.project.Repairs}
	if s.in.Set("max-repairs") {
		if r.Repairs, err = s.number("max-repairs", 100); err != nil {
			return err
		}
	}
	limit, err := s.duration("build-timeout")
	if err != nil {
		return err
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if r.Guard, err = s.project.Guard(); err != nil {
		return err
	}
	if r.Inputs, err = s.project.ReadInputs(r.Guard.List()); err == nil {
		err = s.project.Untouched(r.Inputs.Query, r.DryRun)
	}
	if err != nil {
		return err
	}
	if err := s.prepare(r); err != nil {
		return err
	}
	if !r.DryRun {
		done, err := s.builder(ctx, r, limit)
		if err != nil {
			return err
		}
		defer done()
	}
	res, err := r.Commit(ctx)
	return s.finish(res, exit.OnEngine(err))
}

// number is a flag's value, from 0 on.
func (s *session) number(name string, most int) (int, error) {
	n, err := s.in.Int(name)
	if err == nil && (n < 0 || n > most) {
		err = cli.Usagef("--%s must be 0 to %d, not %d", name, most, n)
	}
	return n, err
}

// duration is a flag's value as a time.
func (s *session) duration(name string) (time.Duration, error) {
	d, err := time.ParseDuration(s.in.String(name))
	if err != nil || d <= 0 {
		return 0, cli.Usagef("--%s must be a time such as 90s, 20m or 1h, not %q", name, s.in.String(name))
	}
	return d, nil
}

// prepare puts the model in place, and what takes its key out of everything.
func (s *session) prepare(r *codecommit.Run) (err error) {
	name, c := s.in.String("model"), model.Config{}
	c.Wait = func(ctx context.Context, why error, d time.Duration) error {
		s.in.Say("%v; trying again in %s", why, d)
		return proc.Pause(ctx, d)
	}
	if c.Retries, err = s.number("retries", 1000); err == nil {
		c.Patience, err = s.duration("timeout")
	}
	if err != nil {
		return err
	}
	client, key, err := s.project.Client(name, c)
	s.in.Safe.Hide(key.Value)
	if err != nil {
		return err
	}
	s.in.Say("%s, with the key of %s", name, key.Where)
	r.Project, r.Model, r.Began = s.project, client, time.Now()
	r.Secrets, r.Keys = s.project.Secrets(key.Value)
	prices, _ := pricelist.Default() // without one, no call has a price
	r.Book, r.Say = money.Book{Ledger: s.ledger, List: prices, Hide: s.in.Safe.Redact, Tell: s.say}, s.say
	out := map[bool]io.Writer{true: s.in.Stderr, false: s.in.Stdout}[s.in.Bool("json")]
	r.Said = func(text string) { fmt.Fprintln(out, strings.TrimSuffix(text, "\n")) }
	for what, text := range map[string]string{"query": r.Inputs.Query, "codebase": r.Inputs.Codebase} {
		if r.Secrets.Holds([]byte(text)) {
			s.in.Warn("the " + what + " holds a secret; the model is shown no more than its last two characters")
		}
	}
	return nil
}

// say tells how it goes, on a line of its own.
func (s *session) say(text string) {
	if s.build != nil {
		s.build.Close()
	}
	s.in.Say("%s", text)
}

// builder decides where the build runs.
func (s *session) builder(ctx context.Context, r *codecommit.Run, limit time.Duration) (done func(), err error) {
	if note, _ := codecommit.Runnable(s.project.Root); note != "" {
		s.in.Warn("every build will be red: " + note)
	}
	s.build = s.in.Safe.Writer(s.in.Bare.Stderr, "build | ")
	host := codecommit.Host{Root: s.project.Root, Stream: s.build, Limit: limit, Secrets: r.Secrets}
	if s.in.String("build-on") != "container" {
		s.in.Say("build.sh runs on this machine as you do; --build-on container keeps it in a box")
		r.Builder = host
		return func() { s.build.Close() }, nil
	}
	conf, err := config.Load(s.project.Root, os.LookupEnv, nil)
	if err != nil {
		return nil, err
	}
	for _, w := range conf.Warnings {
		if !slices.Contains(s.warned, w) {
			s.in.Warn(w)
		}
	}
	box, err := codecommit.OpenBox(ctx, s.project, host, environment.Options{
		Conf: conf, CACert: s.in.String("ca-cert"), Offline: s.in.Bool("offline"), Weak: s.in.Bool(cli.WeakFlag), Safe: s.in.Safe,
		Note: r.Say, NoteImage: r.Say,
	})
	r.Builder = box
	return func() {
		s.build.Close()
		_ = box.Close(ctx) // it says so itself
	}, exit.OnEngine(err)
}
