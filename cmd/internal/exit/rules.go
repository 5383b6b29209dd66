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

// rule says which exit code an error means, and what to do about it.
type rule struct {
	when func(error) bool
	code int
	do   string // may be empty
}

// is is the rule for an error and whatever wraps it.
func is(target error, code int, do string) rule {
	return rule{func(err error) bool { return errors.Is(err, target) }, code, do}
}

// as is the rule for a type of error and whatever wraps one.
func as[E error](code int, do string) rule {
	return rule{func(err error) bool {
		_, is := errors.AsType[E](err)
		return is
	}, code, do}
}

// Code is the exit code of err: nil is Passed, an *Error and a Signal bring
// their own, then the rules are asked. What nobody knows is a Bug.
func Code(err error) int {
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
	for _, r := range rules() {
		if r.when(err) {
			return r.code
		}
	}
	return Bug
}

// Hint is what to do about err, "" when that is not known.
func Hint(err error) string {
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
	for _, r := range rules() {
		if r.do != "" && r.when(err) {
			return r.do
		}
	}
	return ""
}

// rules are asked in this order, and the first that applies decides. What the
// environment did comes last: a person's mistake may have a file's error as its cause.
func rules() []rule {
	const room = "make room on the disk, then run the same command again"
	blocked := func(err error) bool {
		away, is := errors.AsType[retry.Unavailable](err)
		return is && away.Person
	}
	noRoute := func(err error) bool {
		away, is := errors.AsType[retry.Unavailable](err)
		return is && away.Route
	}
	locked := func(err error) bool { // an engine out of reach says itself what to do
		return errors.Is(err, fs.ErrPermission) && !errors.Is(err, sandbox.ErrUnreachable)
	}
	return []rule{
		is(hostfs.ErrLost, Person, "see who took it away and whether another abl works here; when none does, run the same command again"),
		is(environment.ErrNetworks, Boundary, "abl doctor --boundary shows what was found; with --allow-weak-network abl goes on, and every report says so"),
		is(orchestrator.ErrChanged, Person, "nothing of yours was touched; run the same command with --take-mine to commit it as yours and go on from it, or commit it or put it back yourself"),
		as[orchestrator.Refused](Usage, ""),
		as[orchestrator.Frozen](Usage, ""),
		as[orchestrator.Edited](Person, ""),
		is(orchestrator.ErrMoved, Person, ""),
		is(roles.ErrService, Environment, "app.services.NAME.ready says at which port it is asked, and for how long (docs/services.md)"),
		is(git.ErrForeign, Person, ""),
		is(git.ErrBehind, Person, "abl pull says what is there, and nothing of yours is lost; git branch -m keeps a branch that stands in the way under another name"),
		is(git.ErrTooLarge, Person, "see what an agent left there and remove it, then run the same command again"),
		is(git.ErrSecret, Person, "the call is kept: take the value out of the file and run the same command again, or allow it by its name in .abl/config.yaml, as commit: {allow_secrets: [NAME]}"),
		as[*state.Damaged](Person, ""),
		as[*roles.Damaged](Person, "move that file away, and abl continues without it"),
		is(state.ErrNone, Usage, ""),
		is(retry.ErrAgent, Agent, "everything is saved; abl logs shows the calls; run the same command again to retry"),
		is(retry.ErrLogin, Agent, "put a valid key in .env, which takes precedence over the environment, and run the same command again"),
		is(retry.ErrModel, Agent, "name a model that the provider has, in full, in .abl/config.yaml (models.builder, models.verifier), then run the same command again"),
		is(retry.ErrDenied, Agent, "no key is at fault: docs/gateway.md lists what the gateway lets through; change what the message names (models or agents in .abl/config.yaml, or the agent's own settings), then run the same command again"),
		is(agent.ErrNoCall, Agent, ""),
		is(agent.ErrPrompt, Usage, "nothing was asked of it; shorten .abl/project.md or the specs, or choose another agent"),
		{blocked, Away, "see to it with the provider, or choose another agent (docs/agents.md); what was done is kept, and the same command goes on from there"},
		{noRoute, Away, "see whether this machine reaches the provider: HTTPS_PROXY and NO_PROXY or network.proxy, and network.ca_cert (docs/proxies.md; abl doctor names the proxy in use); then run the same command again"},
		is(retry.ErrUnavailable, Away, "what was done is kept; run the same command then: it goes on from there"),
		is(retry.ErrBudget, Budget, "raise the cap in .abl/config.yaml (budget, limits.requests) and run the same command again, or add --budget-usd +5 or --budget-tokens +500000 to it"),
		is(retry.ErrUnproven, Boundary, "the call is kept and entered in tokens.csv; abl doctor --boundary looks at it again"),
		is(roles.ErrKilled, Environment, "run the same command again: abl makes the container again"),
		is(roles.ErrSource, Person, ""),
		is(roles.ErrNoRoom, Environment, room),
		is(hostfs.ErrHeld, Busy, "wait for it, or run abl stop; the lock is freed when it ends"),
		as[*ledger.Foreign](Person, ""),
		as[*yamlfile.Error](Usage, "docs/config.md describes every setting; quote a text that has a colon and a blank"),
		is(images.ErrDockerfile, Usage, ""),
		is(images.ErrHelper, Environment, ""),
		is(sandbox.ErrWeak, Boundary, ""),
		is(sandbox.ErrUnproven, Boundary, "nothing was started in there; abl doctor --boundary looks at it again"),
		is(environment.ErrElsewhere, Environment, "mount the project into abl's container under the very path that it has on the engine's machine (-v \"$PWD:$PWD\" -w \"$PWD\"), or run abl where the engine is"),
		is(syscall.ENOSPC, Environment, room),
		is(syscall.EDQUOT, Environment, room),
		as[*hostfs.ShortWrite](Environment, room), // a regular file takes a part only when there is no room for the rest
		is(hostfs.ErrTooLarge, Usage, "make the file smaller, then run the same command again"),
		is(hostfs.ErrNotRegular, Usage, "replace it by a regular file, then run the same command again"),
		{locked, Environment, "see whose the file or its folder is: an earlier run as root may have made it"},
		as[outside](Environment, ""),
		as[syscall.Errno](Environment, ""),
		as[net.Error](Environment, ""),
		is(sandbox.ErrUnreachable, Environment, ""),
		is(sandbox.ErrNoImage, Environment, ""),
	}
}
