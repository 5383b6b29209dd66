package exit

import (
	"errors"
	"io/fs"
	"net"
	"slices"
	"syscall"
	"time"

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
	"abl/roles/boundary"
	"abl/roles/call"
	"abl/roles/environment"
)

// rule gives the errors that match when an exit code and a hint.
type rule struct {
	when func(error) bool
	code int
	do   string // may be empty
}

// is returns the rule for errors that are or wrap one of targets.
func is(code int, do string, targets ...error) rule {
	return rule{func(err error) bool {
		return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
	}, code, do}
}

// as returns the rule for errors of type E and errors that wrap one.
func as[E error](code int, do string) rule {
	return rule{func(err error) bool {
		_, is := errors.AsType[E](err)
		return is
	}, code, do}
}

// Code returns the exit code of err: Passed for nil, the code of an *Error, a Signal or an
// environment.Error, the code of the first rule that matches, or Bug.
func Code(err error) int {
	var own *Error
	var s Signal
	var classed *environment.Error
	switch {
	case err == nil:
		return Passed
	case errors.As(err, &own):
		return own.Code
	case errors.As(err, &s):
		return s.Code()
	case errors.As(err, &classed):
		return map[environment.Class]int{
			environment.Usage:       Usage,
			environment.Unavailable: Environment,
			environment.Refused:     Agent,
			environment.Away:        Away,
			environment.Person:      Person,
		}[classed.Class]
	}
	for _, r := range rules() {
		if r.when(err) {
			return r.code
		}
	}
	return Bug
}

// Hint returns what the user can do about err, "" if that is unknown.
func Hint(err error) string {
	var own *Error
	var classed *environment.Error
	var mistake *yamlfile.Error
	var specs interface {
		error
		Hint() string
	}
	switch {
	case errors.As(err, &own) && own.Do != "":
		return own.Do
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

// Until returns when the provider accepts requests again, the zero time if that is unknown or no cause of
// err.
func Until(err error) time.Time { return unavailable(err).Back }

// unavailable returns why the provider is unavailable, the zero value if that is no cause of err.
func unavailable(err error) call.Unavailable {
	away, _ := errors.AsType[call.Unavailable](err)
	return away
}

// forbidden reports whether err is about the permissions of a file. An unreachable engine has its own hint.
func forbidden(err error) bool {
	return errors.Is(err, fs.ErrPermission) && !errors.Is(err, sandbox.ErrUnreachable)
}

// rules returns the rules in order; the first that matches decides. Errors of the environment come
// last, since a user's mistake may wrap an error of a file.
func rules() []rule {
	const room = "free disk space, then run the same command again"
	return []rule{
		is(Person, "check whether another abl works here; if none does, run the same command again", hostfs.ErrLost),
		is(Person, "abl left your changes alone; run the same command with --take-mine to commit them as yours and "+
			"continue, or commit or revert them yourself", orchestrator.ErrChanged),
		as[orchestrator.Refused](Usage, ""),
		as[orchestrator.Frozen](Usage, ""),
		as[orchestrator.Edited](Person, ""),
		is(Person, "", orchestrator.ErrMoved),
		is(Environment, "app.services.NAME.ready sets the port that abl checks, and for how long (docs/services.md)",
			boundary.ErrService),
		is(Person, "", git.ErrForeign),
		is(Person, "abl pull restores the published state without losing yours; "+
			"git branch -m renames a branch that is in the way", git.ErrBehind),
		is(Person, "remove the files that an agent left there, then run the same command again", git.ErrTooLarge),
		is(Person, "the call is saved: remove the value from the file and run the same command again, "+
			"or allow it by name in .abl/config.yaml: commit: {allow_secrets: [NAME]}", git.ErrSecret),
		is(Environment, "git push and git fetch by hand show the cause: abl uses your git, "+
			"credential helpers and ssh agent; then run the same command again", git.ErrRemote),
		as[*state.Damaged](Person, ""),
		as[*roles.Damaged](Person, "move that file away; abl continues without it"),
		is(Usage, "", state.ErrNone),
		is(Agent, "everything is saved; abl logs shows the calls; run the same command again to retry", call.ErrAgent),
		is(Agent, "put a valid key in .env, which takes precedence over the environment, and run the same command again",
			call.ErrLogin),
		is(Agent, "set models.builder or models.verifier in .abl/config.yaml to the full name of one of the provider's models, then run the same command again", call.ErrModel),
		is(Agent, "the key is not the cause: docs/gateway.md lists the requests that the gateway allows; change the models or agents in .abl/config.yaml or the agent's own settings, then run the same command again", call.ErrDenied),
		is(Agent, "", agent.ErrNoCall),
		is(Usage, "the agent was not started; shorten .abl/project.md or the specs, or choose another agent", agent.ErrPrompt),
		{func(err error) bool { return unavailable(err).NeedsUser }, Away, "solve it with the provider, or choose another agent (docs/agents.md); everything is saved, and the same command resumes"},
		{func(err error) bool { return unavailable(err).Route }, Away, "check whether this machine reaches the provider: HTTPS_PROXY and NO_PROXY or network.proxy, and network.ca_cert (docs/proxies.md; abl doctor shows the proxy in use); then run the same command again"},
		is(Away, "everything is saved; run the same command later to resume", call.ErrUnavailable),
		is(Budget, "raise the limit in .abl/config.yaml (budget, limits.requests) and run the same command again, or add --budget-usd +5 or --budget-tokens +500000", call.ErrBudget),
		is(Boundary, "the call is saved, also in tokens.csv; abl doctor --boundary runs the checks again", call.ErrUnproven),
		is(Environment, "run the same command again: abl makes the container again", sandbox.ErrKilled),
		is(Person, "", roles.ErrSource),
		is(Environment, room, roles.ErrNoRoom, syscall.ENOSPC, syscall.EDQUOT),
		is(Busy, "wait for it, or run abl stop; abl frees the lock when it ends", hostfs.ErrHeld),
		as[*ledger.Foreign](Person, ""),
		as[*yamlfile.Error](Usage, "docs/config.md describes every setting"),
		is(Usage, "", images.ErrDockerfile),
		is(Usage, "ABL_IMAGES names a file that abl images save wrote", images.ErrArchive),
		is(Boundary, "", sandbox.ErrWeak),
		is(Boundary, "nothing was started in it; abl doctor --boundary runs the checks again", sandbox.ErrUnproven),
		is(Environment, "share the project's folder with the engine's machine under the same path (from a container: "+
			"-v \"$PWD:$PWD\" -w \"$PWD\"), or run abl on that machine", environment.ErrElsewhere),
		as[*hostfs.ShortWrite](Environment, room), // only a full disk takes a part of a write to a regular file
		is(Usage, "make the file smaller, then run the same command again", hostfs.ErrTooLarge),
		is(Usage, "replace it with a regular file, then run the same command again", hostfs.ErrNotRegular),
		{forbidden, Environment, "check who owns the file and its folder: an earlier run as root may have created it"},
		as[outside](Environment, ""),
		as[net.Error](Environment, ""), // syscall.Errno is one too
		is(Environment, "", sandbox.ErrUnreachable, sandbox.ErrNoImage, images.ErrHelper),
	}
}
