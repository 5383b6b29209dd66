package commit

import (
	"errors"
	"fmt"

	"abl/cmd/internal/exit"
	"abl/internal/treeedit"
	"abl/orchestrator/codecommit"
	"abl/roles/model"
)

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
