package exit

import (
	"errors"
	"io/fs"
	"net"
	"syscall"

	"abl/images"
	"abl/internal/git"
	"abl/internal/hostfs"
	"abl/internal/ledger"
	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/internal/yamlfile"
	"abl/orchestrator"
	"abl/roles"
	"abl/roles/agent"
	"abl/roles/environment"
	"abl/roles/retry"
)

// Rule says which exit code an error means, and what to do about it.
type Rule struct {
	When func(error) bool
	Code int
	Do   string // may be empty
}

// Is is the rule for an error and whatever wraps it.
func Is(target error, code int, do string) Rule {
	return Rule{func(err error) bool { return errors.Is(err, target) }, code, do}
}

// As is the rule for a type of error and whatever wraps one.
func As[E error](code int, do string) Rule {
	return Rule{func(err error) bool {
		var e E
		return errors.As(err, &e)
	}, code, do}
}

// Rules are those of a program's own, which are asked in order before those that
// all share; the first that applies decides.
type Rules []Rule

// Code is the exit code of err: nil is Passed, an *Error and a Signal bring
// their own, then the rules are asked. What nobody knows is a Bug.
func (r Rules) Code(err error) int {
	var told *Error
	var s Signal
	var classed *environment.Error
	switch {
	case err == nil:
		return Passed
	case errors.As(err, &told):
		return told.Code
	case errors.As(err, &s):
		return s.Code()
	case errors.As(err, &classed):
		return map[environment.Class]int{
			environment.Usage: Usage, environment.Unavailable: Environment, environment.Refused: Agent, environment.Away: Away, environment.Person: Person,
		}[classed.Class]
	}
	for _, rule := range append(r[:len(r):len(r)], shared()...) {
		if rule.When(err) {
			return rule.Code
		}
	}
	return Bug
}

// Hint is what to do about err, "" when that is not known.
func (r Rules) Hint(err error) string {
	var told *Error
	var classed *environment.Error
	var mistake *yamlfile.Error
	var specs interface {
		error
		Hint() string
	}
	switch {
	case errors.As(err, &told) && told.Do != "":
		return told.Do
	case errors.As(err, &classed) && classed.Do != "":
		return classed.Do
	case errors.As(err, &mistake) && mistake.Hint != "":
		return mistake.Hint
	case errors.As(err, &specs):
		return specs.Hint()
	}
	for _, rule := range append(r[:len(r):len(r)], shared()...) {
		if rule.Do != "" && rule.When(err) {
			return rule.Do
		}
	}
	return ""
}

// Code is Rules.Code without rules of one's own.
func Code(err error) int { return Rules(nil).Code(err) }

// Hint is Rules.Hint likewise.
func Hint(err error) string { return Rules(nil).Hint(err) }

func shared() Rules {
	return append(ofPhases(), ofCalls()...)
}

// ofPhases are the rules for errors of phases.
func ofPhases() Rules {
	return Rules{
		Is(hostfs.ErrLost, Person, "see who took it away and whether another abl works here; when none does, run the same command again"),
		Is(environment.ErrNetworks, Boundary, "abl doctor --boundary shows what was found; with --allow-weak-network abl goes on, and every report says so"),
		Is(orchestrator.ErrChanged, Person, "nothing of yours was touched; run the same command with --take-mine to commit it as yours and go on from it, or commit it or put it back yourself"),
		As[orchestrator.Refused](Usage, ""),
		As[orchestrator.Frozen](Usage, ""),
		As[orchestrator.Edited](Person, ""),
		Is(orchestrator.ErrMoved, Person, ""),
		Is(roles.ErrService, Environment, ""),
		Is(git.ErrForeign, Person, ""),
		Is(git.ErrTooLarge, Person, "see what an agent left there and remove it, then run the same command again"),
		Is(git.ErrSecret, Person, "the call is kept: take the value out of the file and run the same command again, or allow it by its name in .abl/config.yaml, as commit: {allow_secrets: [NAME]}"),
		As[*state.Damaged](Person, ""),
		Is(state.ErrNone, Usage, ""),
	}
}

// ofCalls are those for errors of a call and of its environment. What the
// environment did comes last: a person's mistake may have a file's error as its cause.
func ofCalls() Rules {
	const room = "make room on the disk, then run the same command again"
	blocked := func(err error) bool {
		var away retry.Unavailable
		return errors.As(err, &away) && away.Person
	}
	locked := func(err error) bool { // an engine out of reach says itself what to do
		return errors.Is(err, fs.ErrPermission) && !errors.Is(err, sandbox.ErrUnreachable)
	}
	return Rules{
		Is(retry.ErrAgent, Agent, "everything is kept; see abl logs, then run the same command again"),
		Is(retry.ErrLogin, Agent, "put a valid key into .env (the environment is asked after it), then run the same command again"),
		Is(retry.ErrModel, Agent, "name a model that the provider has, in full, in .abl/config.yaml (models.builder, models.verifier), then run the same command again"),
		Is(retry.ErrDenied, Agent, "no key is at fault: the gateway lets through one model, by its full name, and what docs/gateway.md lists; change models or the agent in .abl/config.yaml, then run the same command again"),
		Is(agent.ErrNoCall, Agent, ""),
		Is(agent.ErrPrompt, Usage, "nothing was asked of it; shorten .abl/project.md or the specs, or choose another agent"),
		{blocked, Away, "see to it with the provider, or choose another agent (docs/agents.md); what was done is kept, and the same command goes on from there"},
		Is(retry.ErrUnavailable, Away, "what was done is kept; run the same command then: it goes on from there"),
		Is(retry.ErrBudget, Budget, "raise the cap in .abl/config.yaml (budget, limits.requests) and run the same command again, or add --budget-usd +5 or --budget-tokens +500000 to it"),
		Is(retry.ErrUnproven, Boundary, "the call is kept and entered in tokens.csv; abl doctor --boundary looks at it again"),
		Is(roles.ErrHolder, Environment, "run the same command again: it makes another"),
		Is(roles.ErrSource, Person, ""),
		Is(roles.ErrNoRoom, Environment, room),
		Is(hostfs.ErrHeld, Busy, "wait for it, or stop it; the lock is freed when it ends"),
		As[*ledger.Foreign](Person, ""),
		As[*yamlfile.Error](Usage, ""),
		Is(images.ErrDockerfile, Usage, ""),
		Is(images.ErrHelper, Environment, ""),
		Is(sandbox.ErrWeak, Boundary, ""),
		Is(sandbox.ErrUnproven, Boundary, "nothing was started in there; abl doctor --boundary looks at it again"),
		Is(environment.ErrElsewhere, Environment, "mount the project into abl's container under the very path that it has on the engine's machine (-v \"$PWD:$PWD\" -w \"$PWD\"), or run abl where the engine is"),
		Is(syscall.ENOSPC, Environment, room),
		Is(syscall.EDQUOT, Environment, room),
		As[*hostfs.ShortWrite](Environment, room), // a regular file takes a part only when there is no room for the rest
		{locked, Environment, "see whose the file or its folder is: an earlier run as root may have made it"},
		As[outside](Environment, ""),
		As[syscall.Errno](Environment, ""),
		As[net.Error](Environment, ""),
		Is(sandbox.ErrUnreachable, Environment, ""),
		Is(sandbox.ErrNoImage, Environment, ""),
	}
}
