package commit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"abl/cmd/internal/exit"
	"abl/cmd/internal/view"
	"abl/internal/git"
	"abl/internal/hostfs"
	"abl/orchestrator/codecommit"
	"abl/roles/model"
)

// show lets the person see what goes on.
func (s *session) show() codecommit.Show {
	in := s.in
	out := in.Stdout
	if in.Bool("json") {
		out = in.Stderr
	}
	return codecommit.Show{
		Say:  func(text string) { in.Say("%s", text) },
		Said: func(text string) { fmt.Fprintln(out, strings.TrimSuffix(text, "\n")) },
		Wait: s.wait, Plan: s.plan,
	}
}

// wait says now and then that something still goes on.
func (s *session) wait(what string) (stop func()) {
	ctx, stop := context.WithCancel(context.Background())
	began := time.Now()
	go func() {
		for pause := 10 * time.Second; ; pause = min(2*pause, time.Minute) {
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
				s.in.Say("still waiting for %s, %s by now", what, time.Since(began).Round(time.Second))
			}
		}
	}()
	return stop
}

// plan shows what a dry run would change, as a diff.
func (s *session) plan(edits []codecommit.Edit) {
	if s.in.Bool("json") {
		return
	}
	const most = 64 << 20
	safe := s.in.Safe
	for _, e := range edits {
		var from, to *string
		if old, err := hostfs.Read(s.project.Root, e.Path, most); err == nil {
			text := safe.String(string(old))
			from = &text
		}
		if !e.Delete {
			text := safe.String(e.Content)
			to = &text
		}
		if err := git.Diff(s.in.Result, safe.Line(e.Path), from, to, view.Coloured(s.in.Bare.Stdout)); err != nil {
			s.in.Warn(err)
		}
	}
	s.in.Say("this would be done to %s; nothing was changed", codecommit.Counted(len(edits), "file", "files"))
}

func (s *session) warnKey(file string) {
	s.in.Warn(file + " is not ignored by git: add it to .gitignore before it is committed")
}

func (s *session) tellRestored(files []string) {
	if len(files) > 0 {
		s.in.Warn("an earlier run was killed while it changed files; they are as they were before: " + strings.Join(files, ", "))
	}
}

// finish says what a run came to.
func (s *session) finish(res codecommit.Result, err error) error {
	if s.in.Bool("json") {
		if problem := s.in.JSON(res); problem != nil {
			return problem
		}
	} else if err == nil {
		tell(s.in.Stdout, res)
	}
	if err != nil {
		return explained(err, "what was asked and answered is in "+res.Logs)
	}
	kept := "all that was asked, answered and built is in " + res.Logs
	switch res.Outcome {
	case codecommit.Red:
		return &exit.Error{Code: exit.Stuck, What: fmt.Sprintf("the build is still red after %s: %s", calls(res), res.Why), Safe: kept, Do: "git status and git diff show the code as the last answer left it"}
	case codecommit.Unusable:
		return &exit.Error{Code: exit.Unverified, What: "the last answer could not be used: " + res.Why, Safe: kept}
	}
	return nil
}

// tell is the result for people.
func tell(w io.Writer, res codecommit.Result) {
	if res.Outcome == codecommit.Passed {
		fmt.Fprintf(w, "the build passes after %s\n", calls(res))
	}
	for _, f := range res.Files {
		what := "changed"
		if f.Deleted {
			what = "deleted"
		}
		fmt.Fprintf(w, "%s %s\n", what, f.Path)
	}
}

func calls(res codecommit.Result) string {
	return codecommit.Counted(len(res.Attempts), "call", "calls")
}

func unclean(n int) error {
	return exit.With(exit.Person, fmt.Errorf("git status shows %d changes, and --require-clean was given", n), "commit or stash them first")
}

// rules say what errors of code-commit's own mean.
func rules() exit.Rules {
	refused := func(kind model.Kind) func(error) bool {
		return func(err error) bool {
			var wrong *model.Error
			return errors.As(err, &wrong) && wrong.Kind == kind
		}
	}
	return exit.Rules{
		{When: refused(model.Away), Code: exit.Away, Do: "try again later"},
		{When: refused(model.Login), Code: exit.Agent, Do: "check the key"},
		exit.As[*model.Error](exit.Agent, ""),
		exit.Is(codecommit.ErrBlocked, exit.Agent, "word the query differently, or ask another model (--model)"),
		exit.Is(codecommit.ErrTorn, exit.Person, "look at git status; what the edits replaced is in the folder that is named"),
		exit.Is(codecommit.ErrInTheWay, exit.Person, "no file was changed; look at git status, then run the same command again"),
		exit.Is(codecommit.ErrEnvironment, exit.Environment, ""),
		exit.Is(hostfs.ErrNotRegular, exit.Usage, ""),
		exit.Is(hostfs.ErrTooLarge, exit.Usage, ""),
	}
}

// explained gives an error its exit code and its hint, also where code-commit is a
// command of abl. kept is what is safe by then.
func explained(err error, kept string) error {
	var known *exit.Error
	code := rules().Code(err)
	switch {
	case err == nil, code == exit.Bug, errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &known):
		if known.Safe == "" {
			known.Safe = kept
		}
		return err
	}
	e := &exit.Error{Code: code, What: err.Error(), Safe: kept, Do: rules().Hint(err), Err: err}
	var wrong *model.Error
	if errors.As(err, &wrong) {
		e.What = wrong.Error()
		if wrong.Kind == model.Away {
			e.What = fmt.Sprintf("%v (after %s)", wrong, codecommit.Counted(wrong.Tries, "try", "tries"))
		}
	}
	return e
}
