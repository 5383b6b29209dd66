package commit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/internal/child"
	"abl/internal/treeedit"
	"abl/orchestrator/codecommit"
	"abl/orchestrator/codecommit/build"
	"abl/orchestrator/codecommit/fence"
	"abl/orchestrator/codecommit/guard"
	"abl/roles/model"
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

// safe refuses a project whose keys are on their way into the repository.
func (s *session) safe(ctx context.Context) error {
	if !s.profile.Ignored {
		return s.warnKeys(ctx, slices.Sorted(maps.Values(s.profile.Keys))...)
	}
	err := codecommit.CheckIgnored(s.root)
	var wrong *codecommit.Unignored
	if errors.As(err, &wrong) {
		return exit.With(exit.Usage, err, "add a line /agent-config to the end of .gitignore; "+s.self+" init does")
	}
	return err
}

// warnKeys warns of files with a key that git does not leave out.
func (s *session) warnKeys(ctx context.Context, files ...string) error {
	g, err := guard.New(ctx, s.root, "")
	if err != nil {
		return exit.With(exit.Usage, err, "")
	}
	for _, file := range files {
		if exists(filepath.Join(s.root, file)) && !g.Ignored(file, false) {
			s.in.Warn(file + " is not ignored by git: add it to .gitignore before it is committed")
		}
	}
	return nil
}

// clean refuses a tree with changes of the person's own.
func (s *session) clean(ctx context.Context) error {
	cmd := child.Command(ctx, "git", "-C", s.root, "status", "--porcelain", "--", ".")
	out, err := cmd.CombinedOutput()
	switch {
	case err != nil:
		return exit.With(exit.Environment, fmt.Errorf("cannot ask git for its status: %w: %s", err, strings.TrimSpace(string(out))), "")
	case len(out) > 0:
		n := strings.Count(string(out), "\n")
		return exit.With(exit.Person, fmt.Errorf("git status shows %d changes, and --require-clean was given", n), "commit or stash them first")
	}
	return nil
}

// input says what to do about a file that is missing.
func (s *session) input(err error) error {
	var missing *codecommit.Missing
	if !errors.As(err, &missing) {
		return exit.With(exit.Usage, err, "")
	}
	roll, do := s.self+" --rollup", "write what you want into it; "+s.self+" init makes the files"
	if s.profile.Name == codecommit.V1 {
		roll, do = s.self+" --protocol v1 --rollup", "write into it what is to be said to the model"
	}
	if missing.Path == s.profile.Codebase {
		do = "make it with " + roll + ", or with a script of your own"
	}
	return exit.With(exit.Usage, err, do)
}

// prepare puts the model in place, and what takes its key out of everything.
func (s *session) prepare(ctx context.Context, r *codecommit.Run) error {
	c, err := s.client(ctx, r.Sending)
	if err != nil {
		return err
	}
	r.Model, r.Clean = c, s.cleaner()
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

// finish says what a run came to.
func (s *session) finish(res codecommit.Result, err error) error {
	if s.in.Bool("json") {
		if problem := s.in.JSON(res); problem != nil {
			return problem
		}
	} else if err == nil {
		s.tell(res)
	}
	if err != nil {
		return trouble(err, res)
	}
	kept := "all that was asked, answered and built is in " + res.Logs
	switch res.Outcome {
	case codecommit.Red:
		return &exit.Error{Code: exit.Stuck, What: fmt.Sprintf("the build is still red after %s: %s", calls(len(res.Attempts)), res.Why), Safe: kept, Do: "git status and git diff show the code as the last answer left it"}
	case codecommit.Unusable:
		return &exit.Error{Code: exit.Unverified, What: "the last answer could not be used: " + res.Why, Safe: kept}
	}
	return nil
}

// tell is the result for people.
func (s *session) tell(res codecommit.Result) {
	if res.Outcome == codecommit.Passed {
		fmt.Fprintf(s.in.Stdout, "the build passes after %s\n", calls(len(res.Attempts)))
	}
	for _, f := range res.Files {
		what := "changed"
		if f.Deleted {
			what = "deleted"
		}
		fmt.Fprintf(s.in.Stdout, "%s %s\n", what, f.Path)
	}
}

func calls(n int) string { return counted(n, "call", "calls") }

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// trouble gives an error its exit code.
func trouble(err error, res codecommit.Result) error {
	kept := "what was asked and answered is in " + res.Logs
	var wrong *model.Error
	var known *exit.Error
	switch {
	case errors.As(err, &wrong) && wrong.Kind == model.Away:
		return &exit.Error{Code: exit.Away, What: fmt.Sprintf("%v (after %s)", wrong, counted(wrong.Tries, "try", "tries")), Safe: kept, Do: "try again later", Err: err}
	case errors.As(err, &wrong) && wrong.Kind == model.Login:
		return &exit.Error{Code: exit.Agent, What: wrong.Error(), Safe: kept, Do: "check the key", Err: err}
	case errors.As(err, &wrong):
		return &exit.Error{Code: exit.Agent, What: wrong.Error(), Safe: kept, Err: err}
	case errors.Is(err, codecommit.ErrBlocked):
		return &exit.Error{Code: exit.Agent, What: err.Error(), Safe: kept, Do: "word the query differently, or ask another model (--model)", Err: err}
	case errors.Is(err, codecommit.ErrEnvironment):
		return &exit.Error{Code: exit.Environment, What: err.Error(), Safe: kept, Err: err}
	case errors.Is(err, treeedit.ErrInTheWay):
		return &exit.Error{Code: exit.Person, What: err.Error(), Safe: "no file was changed; " + kept, Do: "look at git status, then run the same command again", Err: err}
	case errors.As(err, &known) && known.Safe == "":
		return &exit.Error{Code: known.Code, What: known.What, Safe: kept, Do: known.Do, Err: err}
	}
	return err
}
