package commit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"abl/cmd/internal/exit"
	"abl/cmd/internal/view"
	"abl/images"
	"abl/internal/hostfs"
	"abl/internal/sandbox"
	"abl/internal/strictyaml"
	"abl/orchestrator/codecommit"
	"abl/orchestrator/codecommit/fence"
	"abl/orchestrator/ledger"
	"abl/orchestrator/workspace"
	"abl/roles"
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
	done, ended := make(chan struct{}), make(chan struct{})
	began := time.Now()
	go func() {
		defer close(ended)
		for pause := 10 * time.Second; ; pause = min(2*pause, time.Minute) {
			select {
			case <-done:
				return
			case <-time.After(pause):
				s.in.Say("still waiting for %s, %s by now", what, time.Since(began).Round(time.Second))
			}
		}
	}()
	return func() { close(done); <-ended }
}

// plan shows what a dry run would change, as a diff.
func (s *session) plan(edits []fence.Edit) {
	if s.in.Bool("json") {
		return
	}
	const most = 64 << 20
	safe := s.in.Outlet
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
		if err := workspace.Diff(s.in.Result, safe.Line(e.Path), from, to, view.Coloured(s.in.Bare.Stdout)); err != nil {
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
		return trouble(err, "what was asked and answered is in "+res.Logs)
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

// missing says what to do about an input that is not there.
func (s *session) missing(err error) error {
	var missing *codecommit.Missing
	if !errors.As(err, &missing) {
		return &codecommit.Problem{Err: err}
	}
	do := "write what you want into it; " + s.self + " init makes the files"
	switch v1 := s.project.Name == codecommit.V1; {
	case missing.Path == s.project.Codebase && v1:
		do = "make it with a script of your own"
	case missing.Path == s.project.Codebase:
		do = "make it with ./codeRollup.sh, which " + s.self + " init writes, or with a script of your own"
	case v1:
		do = "write into it what is to be said to the model"
	}
	return &codecommit.Problem{Err: err, Do: do}
}

// trouble gives an error of a run its exit code. kept is what is safe by then.
func trouble(err error, kept string) error {
	e := &exit.Error{Code: rules().Code(err), What: err.Error(), Safe: kept, Do: hint(err), Err: err}
	var wrong *model.Error
	var known *exit.Error
	switch {
	case errors.As(err, &wrong) && wrong.Kind == model.Away:
		e.What = fmt.Sprintf("%v (after %s)", wrong, codecommit.Counted(wrong.Tries, "try", "tries"))
	case errors.As(err, &wrong):
		e.What = wrong.Error()
	case errors.As(err, &known):
		e.What = known.What
	case e.Code == exit.Bug, errors.Is(err, context.Canceled):
		return err
	}
	return e
}

// rules say which exit code an error means that does not bring its own.
func rules() exit.Rules {
	kind := func(kinds ...model.Kind) func(error) bool {
		return func(err error) bool {
			var wrong *model.Error
			return errors.As(err, &wrong) && (len(kinds) == 0 || wrong.Kind == kinds[0])
		}
	}
	return exit.Rules{
		{When: kind(model.Away), Code: exit.Away},
		{When: kind(), Code: exit.Agent},
		exit.Is(codecommit.ErrBlocked, exit.Agent),
		exit.Is(hostfs.ErrHeld, exit.Busy),
		exit.Is(codecommit.ErrTorn, exit.Person),
		exit.Is(codecommit.ErrInTheWay, exit.Person),
		exit.As[*ledger.Foreign](exit.Person),
		exit.Is(roles.ErrSource, exit.Person),
		exit.As[*codecommit.Problem](exit.Usage),
		exit.As[*strictyaml.Error](exit.Usage),
		exit.Is(images.ErrDockerfile, exit.Usage),
		exit.Is(sandbox.ErrWeak, exit.Boundary),
		exit.Is(sandbox.ErrUnproven, exit.Boundary),
		exit.Is(sandbox.ErrUnreachable, exit.Environment),
		exit.Is(codecommit.ErrEnvironment, exit.Environment),
		exit.Is(hostfs.ErrNotRegular, exit.Usage),
		exit.Is(hostfs.ErrTooLarge, exit.Usage),
		exit.As[syscall.Errno](exit.Environment),
		exit.As[net.Error](exit.Environment),
	}
}

// hint is what a person can do about an error.
func hint(err error) string {
	var wrong *model.Error
	var problem *codecommit.Problem
	var mistake *strictyaml.Error
	switch {
	case exit.Hint(err) != "":
		return exit.Hint(err)
	case errors.As(err, &problem):
		return problem.Do
	case errors.As(err, &mistake):
		return mistake.Hint
	case errors.As(err, &wrong) && wrong.Kind == model.Away:
		return "try again later"
	case errors.As(err, &wrong) && wrong.Kind == model.Login:
		return "check the key"
	case errors.Is(err, codecommit.ErrBlocked):
		return "word the query differently, or ask another model (--model)"
	case errors.Is(err, hostfs.ErrHeld):
		return "wait until it has ended"
	case errors.Is(err, codecommit.ErrTorn):
		return "look at git status; what the edits replaced is in the folder that is named"
	case errors.Is(err, codecommit.ErrInTheWay):
		return "no file was changed; look at git status, then run the same command again"
	case errors.Is(err, sandbox.ErrUnproven):
		return "nothing was started in there; abl doctor --boundary looks at the engine's networks"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "make room on the disk, then run the same command again"
	}
	return ""
}

// explained gives an error its exit code and its hint, also where code-commit is a
// command of abl, whose table knows none of its errors.
func explained(err error) error {
	var known *exit.Error
	if err == nil || errors.As(err, &known) || errors.Is(err, context.Canceled) {
		return err
	}
	if errors.Is(err, hostfs.ErrHeld) {
		err = fmt.Errorf("another code-commit works on this project: %w", err)
	}
	if code := rules().Code(err); code != exit.Bug {
		return exit.With(code, err, hint(err))
	}
	return err
}
