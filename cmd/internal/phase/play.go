package phase

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/internal/spec"
	"abl/internal/state"
	"abl/internal/testing/failpoint"
	"abl/internal/wording"
	"abl/orchestrator"
	"abl/roles"
	"abl/roles/retry"
)

// Play takes phase n to where it rests. What it returns is the run's last event,
// unless another phase follows. The project is this process's until TellOutcome: one
// that only looks at it would else be in the way of what follows.
func (s *Project) Play(ctx context.Context, n int, again bool, out state.Sink) (state.Event, error) {
	r := &Run{Project: s, phase: n, out: marked{out, s}}
	p, why, err := r.play(ctx, again)
	if err == nil {
		err = notPassed(s.Paths, n, p)
	} else {
		why = err.Error()
	}
	err = exit.Because(ctx, err)
	r.tellFailed(p)
	return outcomeOf(n, p, why, err), err
}

// play returns where the phase rests, and why it was not taken further.
func (r *Run) play(ctx context.Context, again bool) (p state.Phase, why string, err error) {
	a, err := r.takeUp(ctx, again)
	if err != nil {
		return p, "", err
	}
	if !a.Go {
		return a.Open, a.Why, r.tidyAtRest(ctx)
	}
	if r.specs, err = spec.Keep(r.Paths.Specs(), r.phase); err != nil { // the ids of contracts, for the phase begins
		r.In.Warn(fmt.Sprintf("%v; they count for now, and may be others when a spec was edited", err))
	}
	if a, err = orchestrator.Admit(r.file, r.specs, r.phase, again); err != nil { // what is run is what was admitted
		return p, "", err
	}
	r.file.Phases[fmt.Sprint(r.phase)], r.goesOn = &a.Open, true
	r.remark()
	if err = r.announce(); err == nil {
		err = r.openLedger()
	}
	if err == nil {
		err = r.begin(ctx)
	}
	if err != nil {
		return p, "", err
	}
	l := r.loop()
	p, err = l.Run(ctx)
	r.account.TellSpent()
	return p, "", exit.OnEngine(errors.Join(err, r.end(ctx, err)))
}

// takeUp looks whether the phase may run, and takes the project for this process.
func (r *Run) takeUp(ctx context.Context, again bool) (a orchestrator.Admission, err error) {
	if err = r.preflight(ctx, again); err != nil {
		return a, err
	}
	if why := r.weak(); why != "" {
		r.note("weak network, as --" + cli.WeakFlag + " allows: " + why)
	}
	if _, err = r.Lock(); err != nil {
		return a, err
	}
	failpoint.Here("lock.taken")
	if r.file, err = r.State(); err == nil {
		a, err = orchestrator.Admit(r.file, r.Specs(), r.phase, again)
	}
	return a, err
}

// remark tells the person what there is to say about the phase's spec that does not
// stop it, and what earlier ones have lost.
func (r *Run) remark() {
	count := 0
	for _, p := range r.specs.Lint() {
		if p.Phase == r.phase {
			count++
		} else if p.Code == "lost" && p.Phase < r.phase {
			r.In.Warn(fmt.Sprintf("%s; abl spec lint %d", p.Text, p.Phase))
		}
	}
	if count > 0 {
		r.note(fmt.Sprintf("its spec could be better in %s: abl spec lint %d", wording.Count(count, "place"), r.phase))
	}
}

// marked says of what begins and of how all ends that the network is weak.
type marked struct {
	state.Sink
	s *Project
}

// Emit marks an event and hands it on.
func (m marked) Emit(e state.Event) {
	switch e.Kind {
	case state.PhaseStart, state.CallStart, state.CallResume, state.Outcome:
		e.Weak = m.s.weak() != ""
	}
	m.Sink.Emit(e)
}

// TellOutcome gives the project back, emits how the run ended, which is its last event, and
// returns err.
func (s *Project) TellOutcome(out state.Sink, e state.Event, err error) error {
	s.unlock()
	code := exit.Code(err)
	e.Time, e.Exit = time.Now().UTC(), &code
	marked{out, s}.Emit(e)
	return err
}

// outcomeOf says how phase n ended: where it rests, or what stopped it.
func outcomeOf(n int, p state.Phase, why string, err error) state.Event {
	e := state.Event{Kind: state.Outcome, Phase: n, Round: p.Round, Iteration: p.Iteration, Step: p.Step, Verdict: p.LastVerdict}
	e.Text = cmp.Or(string(p.Status), why)
	if p.Status != "" && why != "" {
		e.Text += ": " + why
	}
	if absent, is := errors.AsType[retry.Unavailable](err); is {
		e.Until = absent.Back
	}
	return e
}

// tellFailed shows the contracts on which a phase is stuck.
func (r *Run) tellFailed(p state.Phase) {
	if p.Status != state.Stuck {
		return
	}
	round, err := orchestrator.Attempts(r.Paths, p)
	if err != nil || len(round) == 0 { // what failed is known all the same
		round = []orchestrator.Attempt{{Step: p.Step, Verdict: orchestrator.Fail, Built: true, Failed: p.Failed}}
	}
	for _, text := range orchestrator.Explain(r.phase, round, r.Specs().UpTo(r.phase)) {
		r.emit(state.Event{Phase: r.phase, Role: roles.Verifier.Name, Text: text})
	}
}

// notPassed turns where a phase rests into the command's error, nil for passed.
func notPassed(paths state.Project, n int, p state.Phase) error {
	after := wording.Count(p.Iteration, "iteration")
	e := &exit.Error{Code: exit.Unverified, Safe: "everything is committed"}
	switch p.Status {
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
