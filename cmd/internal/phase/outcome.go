package phase

import (
	"errors"
	"fmt"
	"path/filepath"

	"abl/cmd/internal/exit"
	"abl/internal/state"
	"abl/internal/wording"
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

// tellFailed shows the contracts on which a phase is stuck.
func (r *Run) tellFailed(res orchestrator.Result) {
	if res.Status != state.Stuck {
		return
	}
	round, err := orchestrator.Attempts(r.Paths, res.Phase)
	if err != nil || len(round) == 0 { // what failed is known all the same
		round = []orchestrator.Attempt{{Step: res.Phase.Step, Verdict: orchestrator.Fail, Built: true, Failed: res.Phase.Failed}}
	}
	for _, text := range orchestrator.Explain(r.phase, round, r.Specs().UpTo(r.phase)) {
		r.emit(state.Event{Phase: r.phase, Role: roles.Verifier.Name, Text: text})
	}
}

// notPassed turns where a phase rests into the command's error, nil for passed.
func notPassed(paths state.Project, n int, r orchestrator.Result) error {
	p, after := r.Phase, wording.Count(r.Phase.Iteration, "iteration")
	e := &exit.Error{Code: exit.Unverified, Safe: "everything is committed"}
	switch r.Status {
	case state.Passed:
		return nil
	case state.Stuck:
		still := wording.Count(len(p.Failed), "contract") + " still fail"
		if len(p.Failed) == 1 {
			still += "s"
		}
		e.Code, e.What = exit.Stuck, fmt.Sprintf("phase %d is stuck: %s after %s", n, still, after)
		e.Do = fmt.Sprintf("read %s, refine .abl/specs/phase%d.md, run abl phase %d again", paths.Rel(filepath.Join(paths.Tests, orchestrator.FailedSpecs)), n, n)
	default:
		e.What = fmt.Sprintf("phase %d is unverified: no believable verdict after %s", n, after)
		e.Do = fmt.Sprintf("abl report %d shows what is missing; then abl phase %d --again", n, n)
	}
	return e
}
