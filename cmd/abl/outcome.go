package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"abl/cmd/internal/exit"
	"abl/internal/state"
	"abl/orchestrator"
	"abl/roles"
	"abl/roles/retry"
)

// outcomeOf says how phase n ended: where it rests, or what stopped it.
func outcomeOf(n int, r orchestrator.Result, why string, err error) state.Event {
	p := r.Phase
	e := state.Event{Kind: state.Outcome, Phase: n, Round: p.Round, Iteration: p.Iteration, Step: p.Step, Verdict: p.LastVerdict}
	e.Text = why
	if r.Status != "" {
		e.Text = string(r.Status)
		if why != "" {
			e.Text += ": " + why
		}
	}
	var absent retry.Unavailable
	if errors.As(err, &absent) {
		e.Until = absent.Back
	}
	return e
}

// tellOutcome emits how the run ended, which is its last event, and returns err.
func (s *session) tellOutcome(out state.Sink, e state.Event, err error) error {
	code := exit.Code(err)
	e.Time, e.Exit = time.Now().UTC(), &code
	marked{out, s}.Emit(e)
	return err
}

// tellFailed shows the contracts on which a phase is stuck.
func (s *session) tellFailed(out state.Sink, n int, r orchestrator.Result) {
	if r.Status != state.Stuck {
		return
	}
	round, err := orchestrator.Attempts(s.project, r.Phase)
	if err != nil || len(round) == 0 { // what failed is known all the same
		round = []orchestrator.Attempt{{Step: r.Phase.Step, Verdict: orchestrator.Fail, Built: true, Failed: r.Phase.Failed}}
	}
	for _, text := range orchestrator.Explain(n, round, s.specs().UpTo(n)).Lines() {
		out.Emit(state.Event{Time: time.Now().UTC(), Kind: state.Note, Phase: n, Role: roles.Verifier.Name, Text: text})
	}
}

// verdictError turns where a phase rests into the command's error, nil for passed.
func (s *session) verdictError(n int, r orchestrator.Result) error {
	p := r.Phase
	switch r.Status {
	case state.Passed:
		return nil
	case state.Stuck:
		return s.stuckError(n, p)
	}
	return &exit.Error{Code: exit.Unverified, What: fmt.Sprintf("phase %d is unverified: no believable verdict after %s", n, iterations(p.Iteration)),
		Safe: "everything is committed", Do: fmt.Sprintf("abl report %d shows what is missing; then abl phase %d --again", n, n)}
}

func (s *session) stuckError(n int, p state.Phase) error {
	return &exit.Error{Code: exit.Stuck, What: fmt.Sprintf("phase %d is stuck: %s after %s", n, stillFail(len(p.Failed)), iterations(p.Iteration)),
		Safe: "everything is committed", Do: fmt.Sprintf("read %s, refine .abl/specs/phase%d.md, run abl phase %d again", s.project.Rel(filepath.Join(s.project.Tests, orchestrator.FailedSpecs)), n, n)}
}

func stillFail(n int) string {
	if n == 1 {
		return "1 contract still fails"
	}
	return fmt.Sprintf("%d contracts still fail", n)
}

func iterations(n int) string {
	if n == 1 {
		return "1 iteration"
	}
	return fmt.Sprintf("%d iterations", n)
}
