package commit

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/view"
	"abl/internal/hostfs"
	"abl/internal/wording"
	"abl/orchestrator/codecommit"
)

// plan shows what a dry run would change, as a diff.
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
	s.in.Say("this would be done to %s; nothing was changed", wording.Count(len(edits), "file"))
}

func tellRestored(in *cli.Input, files []string) {
	if len(files) > 0 {
		in.Warn("an earlier run was killed while it changed files; they are as they were before: " + strings.Join(files, ", "))
	}
}

// finish says what a run came to.
func (s *session) finish(res codecommit.Result, err error) error {
	if res.Logs == "" { // it did not begin
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
	all := "all that was asked, answered and built is in " + res.Logs
	switch res.Outcome {
	case codecommit.Red:
		return &exit.Error{Code: exit.Stuck, What: fmt.Sprintf("the build is still red after %s: %s", calls, res.Why), Safe: all, Do: "git status and git diff show the code as the last answer left it"}
	case codecommit.Unusable:
		return &exit.Error{Code: exit.Unverified, What: "the last answer could not be used: " + res.Why, Safe: all}
	}
	return nil
}

// kept says besides an error what is safe by then.
func kept(err error, logs string) error {
	code := exit.Code(err)
	if logs == "" || code == exit.Passed || code == exit.Bug || errors.Is(err, context.Canceled) {
		return err
	}
	return &exit.Error{Code: code, What: err.Error(), Safe: "what was asked and answered is in " + logs, Do: exit.Hint(err), Err: err}
}
