package commit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/money"
	"abl/cmd/internal/view"
	"abl/internal/config"
	"abl/internal/hostfs"
	"abl/internal/ledger"
	"abl/internal/proc"
	"abl/internal/redact"
	"abl/internal/state"
	"abl/internal/wording"
	"abl/orchestrator/codecommit"
	"abl/roles/environment"
	"abl/roles/model"
)

// session is one run of a command in one project.
type session struct {
	in      *cli.Input
	project codecommit.Project
	ledger  *ledger.Ledger
	conf    *config.Loaded     // for a build in a container
	build   *redact.SafeWriter // prints the output of the build

	transport http.RoundTripper // for requests to the model; nil for Go's default
}

// open finds the project and reads its settings.
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
	weak, conf := in.HideSecrets(root), &config.Loaded{}
	if in.String("build-on") == "container" {
		conf, err = config.Load(root, os.LookupEnv, nil)
	} else {
		conf.Dotenv, conf.Warnings, err = config.ReadEnv(filepath.Join(root, ".env"))
	}
	if err != nil && !errors.Is(err, hostfs.ErrAbsent) {
		return nil, exit.With(exit.Usage, err, "")
	}
	p.Env = conf.Dotenv
	for _, w := range append(conf.Warnings, weak...) {
		in.Warn(w)
	}
	return &session{in: in, project: p, ledger: ledger.Open(filepath.Join(p.Logs, "tokens.csv")), conf: conf}, nil
}

// lock locks the project. It warns of files with keys that git does not ignore.
func (s *session) lock(ctx context.Context) (unlock func() error, err error) {
	files, err := s.project.Exposed(ctx)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		s.in.Warn(file + " is not ignored by git: add it to .gitignore before it is committed")
	}
	if s.in.Bool("require-clean") {
		if err := s.project.Unchanged(ctx); err != nil {
			return nil, err
		}
	}
	unlock, restored, err := s.project.Lock()
	printRestored(s.in, restored)
	return unlock, err
}

// change runs the workflow that changes code.
func (s *session) change(ctx context.Context) (err error) {
	r := &codecommit.Run{Abort: s.in.String("on-parse-error") == "abort", DryRun: s.in.Bool("dry-run"),
		Repairs: s.project.Repairs}
	if s.in.Set("max-repairs") {
		if r.Repairs, err = s.number("max-repairs", 100); err != nil {
			return err
		}
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
		done, err := s.builder(ctx, r)
		if err != nil {
			return err
		}
		defer done() // prints its errors
	}
	res, err := r.Commit(ctx)
	return s.finish(res, exit.OnEngine(err))
}

// number returns the value of a flag from 0 to most.
func (s *session) number(name string, most int) (int, error) {
	n, err := s.in.Int(name)
	if err == nil && (n < 0 || n > most) {
		err = cli.Usagef("--%s must be 0 to %d, not %d", name, most, n)
	}
	return n, err
}

// duration returns the value of a flag as a duration.
func (s *session) duration(name string) (time.Duration, error) {
	d, err := time.ParseDuration(s.in.String(name))
	if err != nil || d <= 0 {
		return 0, cli.Usagef("--%s must be a time such as 90s, 20m or 1h, not %q", name, s.in.String(name))
	}
	return d, nil
}

// prepare sets the model, the secrets and the ledger of a run.
func (s *session) prepare(r *codecommit.Run) (err error) {
	name, c := s.in.String("model"), model.Config{Transport: s.transport}
	w := &watched{in: s.in, stop: func() {}}
	c.Heard = func(length int) { w.length.Store(int64(length)) }
	c.Wait = func(ctx context.Context, why error, d time.Duration) error {
		w.stop()
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
	w.Client = client
	r.Project, r.Model, r.Began = s.project, w, time.Now()
	r.Secrets, r.Keys = s.project.Secrets(key.Value, s.in.Safe.Hide)
	prices, _ := ledger.DefaultPrices() // without one, no call has a price
	r.Book, r.Say = money.Book{Ledger: s.ledger, List: prices, Hide: s.in.Safe.Redact, Note: s.say}, s.say
	out := map[bool]io.Writer{true: s.in.Stderr, false: s.in.Stdout}[s.in.Bool("json")]
	r.Said = func(text string) { fmt.Fprintln(out, strings.TrimSuffix(text, "\n")) }
	for what, text := range map[string]string{"query": r.Inputs.Query, "codebase": r.Inputs.Codebase} {
		if r.Secrets.Holds([]byte(text)) {
			s.in.Warn("the " + what + " contains a secret; the model sees only its last two characters")
		}
	}
	return nil
}

// say prints progress on a separate line.
func (s *session) say(text string) {
	if s.build != nil {
		s.build.Close()
	}
	s.in.Say("%s", text)
}

// builder sets where the build runs: on this machine or in a container.
func (s *session) builder(ctx context.Context, r *codecommit.Run) (done func() error, err error) {
	limit, err := s.duration("build-timeout")
	if err != nil {
		return nil, err
	}
	if note := codecommit.Runnable(s.project.Root); note != "" {
		s.in.Warn("every build will fail: " + note)
	}
	s.build = s.in.Safe.Writer(s.in.Bare.Stderr, "build | ")
	host := codecommit.Host{Root: s.project.Root, Stream: s.build, Limit: limit, Secrets: r.Secrets}
	if s.in.String("build-on") != "container" {
		s.in.Say("build.sh runs on this machine with your rights; --build-on container isolates it")
		r.Builder = host
		return s.build.Close, nil
	}
	container, err := codecommit.OpenBuildContainer(ctx, s.project, host, environment.Options{
		Conf:      s.conf,
		CACert:    s.in.String("ca-cert"),
		Offline:   s.in.Bool("offline"),
		Weak:      s.in.Bool(cli.WeakFlag),
		Safe:      s.in.Safe,
		Note:      r.Say,
		NoteImage: r.Say,
	})
	r.Builder = container
	return func() error { return errors.Join(s.build.Close(), container.Close(ctx)) }, exit.OnEngine(err)
}

// plan prints the changes of a dry run as a diff.
func (s *session) plan(edits []codecommit.Edit) {
	const most = 64 << 20
	safe := s.in.Safe
	for _, e := range edits {
		var from, to *string
		if old, err := hostfs.Read(s.project.Root, e.Path, most); err == nil {
			from = new(safe.String(string(old)))
		}
		if !e.Delete {
			to = new(safe.String(e.Content))
		}
		if err := view.Diff(s.in.Result, safe.Line(e.Path), from, to, view.Coloured(s.in.Bare.Stdout)); err != nil {
			s.in.Warn(err)
		}
	}
	s.in.Say("this would change %s; nothing was changed", wording.Count(len(edits), "file"))
}

func printRestored(in *cli.Input, files []string) {
	if len(files) > 0 {
		in.Warn("an earlier run was killed while it changed files; restored: " + strings.Join(files, ", "))
	}
}

// finish prints the result of a run, and returns its error.
func (s *session) finish(res codecommit.Result, err error) error {
	if res.Logs == "" { // the run did not begin
		return err
	}
	calls := wording.Count(len(res.Attempts), "call")
	if s.in.Bool("json") {
		if problem := s.in.JSON(res); problem != nil {
			return problem
		}
	} else if err == nil {
		switch res.Outcome {
		case codecommit.Planned:
			s.plan(res.Attempts[0].Files)
		case codecommit.Passed:
			fmt.Fprintf(s.in.Stdout, "the build passes after %s\n", calls)
		}
		for _, f := range res.Files {
			what := map[bool]string{true: "deleted", false: "changed"}[f.Delete]
			fmt.Fprintf(s.in.Stdout, "%s %s\n", what, f.Path)
		}
	}
	if err != nil {
		return kept(err, res.Logs)
	}
	all := "questions, answers and builds are in " + res.Logs
	switch res.Outcome {
	case codecommit.Red:
		return &exit.Error{
			Code: exit.Stuck,
			What: fmt.Sprintf("the build still fails after %s: %s", calls, res.Why),
			Safe: all,
			Do:   "git status and git diff show the code after the last answer",
		}
	case codecommit.Unusable:
		return &exit.Error{Code: exit.Unverified, What: "the last answer is invalid: " + res.Why, Safe: all}
	}
	return nil
}

// kept adds to an error where the questions and answers are saved.
func kept(err error, logs string) error {
	code := exit.Code(err)
	if logs == "" || code == exit.Passed || code == exit.Bug || errors.Is(err, context.Canceled) {
		return err
	}
	return &exit.Error{
		Code: code,
		What: err.Error(),
		Safe: "questions and answers are in " + logs,
		Do:   exit.Hint(err),
		Err:  err,
	}
}
