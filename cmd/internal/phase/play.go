package phase

import (
	"context"
	"errors"
	"fmt"
	"time"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/internal/spec"
	"abl/internal/state"
	"abl/internal/testing/failpoint"
	"abl/internal/wording"
	"abl/orchestrator"
)

// Play takes phase n to where it rests. What it returns is the run's last event,
// unless another phase follows.
func (s *Project) Play(ctx context.Context, n int, again bool, out state.Sink) (state.Event, error) {
	r := &Run{Project: s, phase: n, out: marked{out, s}}
	result, why, err := r.play(ctx, again)
	if err == nil {
		err = notPassed(s.Paths, n, result)
	} else {
		why = err.Error()
	}
	err = exit.Because(ctx, err)
	r.tellFailed(result)
	return outcomeOf(n, result, why, err), err
}

// play returns where the phase rests, and why it was not taken further.
func (r *Run) play(ctx context.Context, again bool) (result orchestrator.Result, why string, err error) {
	unlock, a, err := r.takeUp(ctx, again)
	if err != nil {
		return result, "", err
	}
	defer unlock()
	if !a.Go {
		return orchestrator.Result{Status: a.Open.Status, Phase: a.Open}, a.Why, r.tidyAtRest(ctx)
	}
	if r.specs, err = spec.Keep(r.Paths.Specs(), r.phase); err != nil { // the ids of contracts, for the phase begins
		r.In.Warn(fmt.Sprintf("%v; they count for now, and may be others when a spec was edited", err))
	}
	if a, err = orchestrator.Admit(r.file, r.specs, r.phase, again); err != nil { // what is run is what was admitted
		return result, "", err
	}
	r.file.Phases[fmt.Sprint(r.phase)] = &a.Open
	r.remark()
	if err = r.announce(); err == nil {
		err = r.openLedger()
	}
	if err == nil {
		err = r.begin(ctx, r.openGates)
	}
	if err != nil {
		return result, "", err
	}
	result, err = r.loop().Run(ctx)
	r.account.TellSpent()
	return result, "", exit.OnEngine(errors.Join(err, r.end(ctx, err)))
}

// takeUp looks whether the phase may run, and takes the project for this process.
func (r *Run) takeUp(ctx context.Context, again bool) (unlock func(), a orchestrator.Admission, err error) {
	if err := r.preflight(ctx, again); err != nil {
		return nil, a, err
	}
	if why := r.weak(); why != "" {
		r.note("weak network, as --" + cli.WeakFlag + " allows: " + why)
	}
	if unlock, err = r.Lock(); err != nil {
		return nil, a, err
	}
	failpoint.Here("lock.taken")
	if r.file, err = r.State(); err == nil {
		a, err = orchestrator.Admit(r.file, r.Specs(), r.phase, again)
	}
	if err != nil {
		unlock()
	}
	return unlock, a, err
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

// TellOutcome emits how the run ended, which is its last event, and returns err.
func (s *Project) TellOutcome(out state.Sink, e state.Event, err error) error {
	code := exit.Code(err)
	e.Time, e.Exit = time.Now().UTC(), &code
	marked{out, s}.Emit(e)
	return err
}
