// Package orchestrator runs phases. Next and After decide what a phase does next, as pure
// functions. Loop loads, acts and saves. Calls, the app, replays and repositories are interfaces,
// so the package does not depend on an engine, the command line or exit codes.
package orchestrator

import (
	"fmt"
	"strings"
	"time"

	"abl/internal/failedspecs"
	"abl/internal/outcome"
	"abl/internal/state"
	"abl/roles"
	"abl/roles/call"
)

// Step is one step of a phase. An interrupted step is repeated.
type Step string

// The steps. Rest means that nothing happens until the user acts.
const (
	Begin       Step = "begin a round"
	Build       Step = "run the builder"
	CommitSrc   Step = "commit the source"
	Verify      Step = "run the verifier"
	Judge       Step = "judge"
	NextAttempt Step = "begin the next iteration"
	Rest        Step = "rest"
)

// Next returns the next step of a phase, which only depends on the phase's state.
func Next(p state.Phase) (Step, error) {
	switch p.Status {
	case state.Ready, state.Stale:
		return Begin, nil
	case state.Building:
		return Build, nil
	case state.Built:
		return CommitSrc, nil
	case state.Verifying:
		return Verify, nil
	case state.Verified:
		return Judge, nil
	case state.Refuted:
		return NextAttempt, nil
	case state.Passed, state.Stuck, state.Unverified:
		return Rest, nil
	}
	return "", fmt.Errorf("internal error: status %q has no step", p.Status)
}

// Verdict is the result of an iteration.
type Verdict string

// The verdicts. A missing verdict is never a pass.
const (
	Pass    Verdict = "pass"
	Fail    Verdict = "fail"
	Unknown Verdict = "unverified"
)

// Happened is the result of a step.
type Happened struct {
	SpecSHA string              // Begin
	SpecLen int                 // Begin: bytes under that hash
	Setting string              // Begin: hash of the settings
	Floor   int                 // Begin: the highest step on record
	Recheck bool                // Begin of a stale phase: its tests can be replayed
	Class   outcome.Outcome     // Build, Verify: how the call ended
	Reason  string              // Build, Verify: why it is not done
	Back    time.Time           // Build, Verify: when the provider accepts requests again
	Paid    bool                // Build, Verify: waiting does not help
	Grown   bool                // Build, Verify: the prompt became too long during the call
	Unheard bool                // Build, Verify: no request of the call reached the provider
	Took    time.Duration       // Build, Verify: the call
	Report  bool                // Build: the call left its run report
	Commit  string              // CommitSrc, Judge
	Verdict Verdict             // Judge
	Entries []failedspecs.Entry // Judge: what failed
	Missing []string            // Judge: why there is no verdict, shown to the Verifier in its next call
	Tree    string              // Judge: hash of the tested source
	Stalled string              // Judge: message to the next Builder if there is no progress
	Idle    bool                // Judge: no progress for as long as the settings allow
	Retry   Retry               // always
}

// maxTries is how often in a row a call may fail before the run stops. A failed call uses no
// iteration.
const maxTries = 2

// After returns the state of a phase after a step. An error means that the run ends although the
// phase could continue. The returned phase is where the next run continues.
func After(p state.Phase, did Step, h Happened, max int) (state.Phase, error) {
	switch did {
	case Begin:
		return begin(p, h), nil
	case Build:
		return ended(p, state.Built, h)
	case CommitSrc:
		return committed(p, h)
	case Verify:
		return ended(p, state.Verified, h)
	case Judge:
		return judged(p, h, max)
	case NextAttempt:
		return iterate(p, state.Building), nil
	}
	return p, fmt.Errorf("internal error: no step follows %q", did)
}

// begin opens a round of iterations. The round of a stale phase begins with a check whether the
// phase still holds: by a replay before the first iteration, or by a Verifier.
func begin(p state.Phase, h Happened) state.Phase {
	stale := p.Status == state.Stale
	p.Round++
	p.SpecSHA, p.SpecSize, p.Settings = h.SpecSHA, h.SpecLen, h.Setting
	p.Iteration, p.Stalled, p.Repeated = 0, "", 0
	p.Step = max(p.Step, h.Floor)
	p.Outage, p.Fallback = nil, nil
	if !stale {
		return iterate(p, state.Building)
	}
	p = iterate(p, state.Verifying)
	p.Recheck = h.Recheck
	if p.Recheck {
		p.Iteration = 0
	}
	return p
}

// iterate opens an iteration at the given status.
func iterate(p state.Phase, at state.Status) state.Phase {
	p.Iteration++
	p.Step++
	p.VerifierOnly, p.Recheck = at == state.Verifying, false
	p.Why = nil
	p.LastVerdict, p.AppFailed, p.Regressed = "", "", nil
	p.ReportMissing = false
	return fresh(p, at)
}

// fresh opens the first attempt at a call.
func fresh(p state.Phase, at state.Status) state.Phase {
	p.Status, p.Attempt, p.Tries, p.Asked, p.Class = at, 1, 0, false, ""
	return p
}

// again opens the next attempt at a call.
func again(p state.Phase, at state.Status) state.Phase {
	p.Status = at
	p.Attempt++
	p.Class = ""
	return p
}

// ended records the end of a call. The next run repeats an interrupted call.
func ended(p state.Phase, at state.Status, h Happened) (state.Phase, error) {
	if h.Class == outcome.Interrupted {
		return again(p, p.Status), nil
	}
	was := p.Outage
	p.Status, p.Class, p.Note, p.Back, p.NeedsPerson, p.Grown = at, string(h.Class), h.Reason, h.Back, h.Paid, h.Grown
	p.Outage = nil
	switch {
	case h.Class.Transient():
		p.Outage = call.Charged(was, h.Class, h.Took, h.Retry.Now)
	case h.Class == outcome.Done && was != nil && was.Class == string(outcome.Unavailable):
		p.Fallback = with(p.Fallback, roleAt(at), 0) // an overload passes sooner than a quota is renewed
	}
	if at == state.Built {
		p.ReportMissing = !h.Report
	}
	return p, nil
}

// committed continues with the Verifier, unless the Builder must be called again: its call failed,
// or it left no report and was not asked for it yet.
func committed(p state.Phase, h Happened) (state.Phase, error) {
	p.SrcCommit = h.Commit
	if p.Class != string(outcome.Done) {
		return failed(p, state.Building, h.Retry)
	}
	if p.ReportMissing && !p.Asked {
		p = again(p, state.Building)
		p.Asked, p.Why = true, []string{"the run report of this call is missing"}
		return p, nil
	}
	p.Why = nil
	return fresh(p, state.Verifying), nil
}

// failed continues after a failed call. It waits after a transient failure, repeats the call once
// after another failure, and returns an error if repeating does not help.
func failed(p state.Phase, at state.Status, w Retry) (state.Phase, error) {
	class, why := outcome.Outcome(p.Class), p.Note
	p = again(p, at)
	if at == state.Building {
		p.Why = []string{"that call was ended early: " + string(class)}
	}
	if class.Transient() {
		return afterTransient(p, roleAt(at), why, class, w)
	}
	if err := call.Stops(outcome.Fault{Class: class, What: why, Grown: p.Grown}); err != nil {
		return p, err
	}
	p.Tries++
	if p.Tries < maxTries {
		return p, nil
	}
	p.Tries = 0
	return p, fmt.Errorf("%w: the %s's call ended as %q: %s", call.ErrAgent, roleAt(at), class, why)
}

// roleAt returns the role whose call a status belongs to.
func roleAt(s state.Status) string {
	if s == state.Verifying || s == state.Verified {
		return roles.Verifier.Name
	}
	return roles.Builder.Name
}

// judged returns the phase after a verdict. max is the number of iterations.
func judged(p state.Phase, h Happened, max int) (state.Phase, error) {
	p.TestsCommit, p.LastVerdict, p.Stalled = h.Commit, string(h.Verdict), h.Stalled
	_, p.AppPrinted, _ = strings.Cut(p.AppFailed, "\n")
	switch {
	case h.Verdict == Pass:
		p.Status, p.Why, p.Failed = state.Passed, nil, nil
		p.PassedSHA, p.PassedSize = p.SpecSHA, p.SpecSize
		return p, nil
	case h.Verdict == Fail:
		p.Status, p.Why, p.Failed = state.Refuted, nil, h.Entries
		if p.Iteration >= max || h.Idle {
			p.Status = state.Stuck
		}
		return p, nil
	case p.Recheck:
		p = iterate(p, state.Verifying)
		p.Why = h.Missing
		return p, nil
	case p.Class != string(outcome.Done):
		p.Why = h.Missing
		return failed(p, state.Verifying, h.Retry)
	case h.Idle:
		p.Status, p.Why = state.Unverified, h.Missing
		return p, nil
	case !p.Asked:
		p = again(p, state.Verifying)
		p.Asked, p.Why = true, h.Missing
		return p, nil
	case p.Iteration >= max:
		p.Status, p.Why = state.Unverified, h.Missing
		return p, nil
	}
	p = iterate(p, state.Verifying)
	p.Why = h.Missing
	return p, nil
}
