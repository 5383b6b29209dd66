// Package orchestrator decides what a phase does next and does it: Next and
// After are pure and total, Loop loads, acts and saves. Calls, the app, replays and
// repositories are behind interfaces: no engine, command line or exit code may be in it.
package orchestrator

import (
	"fmt"

	"abl/internal/state"
)

// Step is one thing a phase can do. Each is idempotent, so a step that was
// interrupted is simply done again.
type Step string

// The steps, and Rest: nothing is left to do until a person acts.
const (
	Begin       Step = "begin a round"
	Build       Step = "run the builder"
	CommitSrc   Step = "commit the source"
	Verify      Step = "run the verifier"
	Judge       Step = "judge"
	NextAttempt Step = "begin the next iteration"
	Rest        Step = "rest"
)

// Next says what a phase does next, from nothing but where it rests.
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

// Verdict is what an iteration came to.
type Verdict string

// The verdicts. Silence is never a pass.
const (
	Pass    Verdict = "pass"
	Fail    Verdict = "fail"
	Unknown Verdict = "unverified"
)
