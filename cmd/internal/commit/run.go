package commit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"abl/cmd/internal/cli"
	"abl/orchestrator/codecommit"
	"abl/orchestrator/codecommit/build"
	"abl/orchestrator/codecommit/fence"
)

// duration is a flag's value as a time.
func duration(in *cli.Input, name string) (time.Duration, error) {
	d, err := time.ParseDuration(in.String(name))
	if err != nil || d <= 0 {
		return 0, cli.Usagef("--%s must be a time such as 90s, 20m or 1h, not %q", name, in.String(name))
	}
	return d, nil
}

// commit is the workflow that changes code.
func (s *session) commit(ctx context.Context) (err error) {
	repairs, limit, err := s.bounds()
	if err != nil {
		return err
	}
	if err := s.safe(ctx); err != nil {
		return err
	}
	if s.in.Bool("require-clean") {
		if err := s.clean(ctx); err != nil {
			return err
		}
	}
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	g, list, err := s.guard(ctx)
	if err != nil {
		return err
	}
	r := &codecommit.Run{
		Root: s.root, Profile: s.profile, Guard: g, Repairs: repairs, Abort: s.in.String("on-parse-error") == "abort", DryRun: s.in.Bool("dry-run"),
		Book: s.ledger(), Price: price, Show: s.show(),
	}
	if r.Inputs, err = s.profile.ReadInputs(s.root, list); err != nil {
		return s.input(err)
	}
	if err := s.untouched(r.Inputs.Query, r.DryRun); err != nil {
		return err
	}
	if err := s.prepare(ctx, r); err != nil {
		return err
	}
	if !r.DryRun {
		done, err := s.builder(ctx, r, limit)
		if err != nil {
			return err
		}
		defer done()
	}
	if err := s.openLogs(r, s.profile.Suffix); err != nil {
		return err
	}
	res, err := r.Commit(ctx)
	return s.finish(res, err)
}

// bounds are the numbers among the flags.
func (s *session) bounds() (repairs int, limit time.Duration, err error) {
	repairs = s.profile.Repairs
	if s.in.Set("max-repairs") {
		const most = 100
		if repairs, err = s.in.Int("max-repairs"); err != nil {
			return 0, 0, err
		}
		if repairs < 0 || repairs > most {
			return 0, 0, cli.Usagef("--max-repairs must be 0 to %d, not %d", most, repairs)
		}
	}
	limit, err = duration(s.in, "build-timeout")
	return repairs, limit, err
}

// prepare puts the model in place, and what takes its key out of everything.
func (s *session) prepare(ctx context.Context, r *codecommit.Run) error {
	c, err := s.client(ctx, r.Sending)
	if err != nil {
		return err
	}
	r.Model, r.Clean, r.Holds = c, s.cleaner(), s.holdsKey
	if r.Clean(r.Inputs.Query) != r.Inputs.Query {
		s.in.Warn("the query holds a secret; the model is shown no more than its last two characters")
	}
	if r.Clean(r.Inputs.Codebase) != r.Inputs.Codebase {
		s.in.Warn("the codebase holds a secret; the model is shown no more than its last two characters")
	}
	return nil
}

func (s *session) openLogs(r *codecommit.Run, suffix string) (err error) {
	dir, _ := s.logDir()
	r.Logs, err = codecommit.NewFolder(dir, s.began, suffix, r.Clean)
	if err == nil {
		s.say("logs: " + r.Logs.Path)
	}
	return err
}

// show lets the person see what goes on.
func (s *session) show() codecommit.Show {
	return codecommit.Show{
		Say: s.say, Wait: s.wait,
		Said: func(text string) {
			out := s.in.Stdout
			if s.in.Bool("json") {
				out = s.in.Stderr
			}
			fmt.Fprintln(out, strings.TrimSuffix(text, "\n"))
		},
		Plan: func(edits []fence.Edit) { s.plan(edits) },
	}
}

// builder decides where the build runs.
func (s *session) builder(ctx context.Context, r *codecommit.Run, limit time.Duration) (done func(), err error) {
	if note, _ := build.Runnable(s.root); note != "" {
		s.in.Warn("every build will be red: " + note)
	}
	if s.in.String("build-on") == "container" {
		return s.boxed(ctx, r, limit)
	}
	s.say("build.sh runs on this machine as you do; --build-on container keeps it in a box")
	stream := s.in.Outlet.Writer(s.in.Bare.Stderr, "build | ")
	r.Builder = shown{build.Host{Root: s.root, Stream: stream, Limit: limit, Clean: s.cleaning}, stream}
	return func() { stream.Close() }, nil
}

// cleaning takes the secrets out of what passes, in whatever pieces it comes.
func (s *session) cleaning(w io.Writer) io.WriteCloser { return s.known.Writer(w) }

// shown ends the last line of a build's output before somebody else speaks.
type shown struct {
	codecommit.Builder
	stream io.Closer
}

func (b shown) Build(ctx context.Context) (codecommit.Built, error) {
	built, err := b.Builder.Build(ctx)
	return built, errors.Join(err, b.stream.Close())
}
