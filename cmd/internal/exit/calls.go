package exit

import (
	"errors"
	"net"
	"syscall"

	"abl/images"
	"abl/internal/hostfs"
	"abl/internal/ledger"
	"abl/internal/sandbox"
	"abl/internal/yamlfile"
	"abl/roles"
	"abl/roles/agent"
	"abl/roles/retry"
)

// Calls are the rules that say which exit code an error of a call means, or of its
// environment.
// What the environment did comes last: a person's mistake may have a file's error
// as its cause.
func Calls() Rules {
	return Rules{
		Is(retry.ErrAgent, Agent),
		Is(retry.ErrLogin, Agent),
		Is(retry.ErrModel, Agent),
		Is(retry.ErrDenied, Agent),
		Is(agent.ErrNoCall, Agent),
		Is(agent.ErrPrompt, Usage),
		Is(retry.ErrUnavailable, Away),
		Is(retry.ErrBudget, Budget),
		Is(retry.ErrUnproven, Boundary),
		Is(roles.ErrHolder, Environment),
		Is(roles.ErrSource, Person),
		Is(roles.ErrNoRoom, Environment),
		Is(hostfs.ErrHeld, Busy),
		As[*ledger.Foreign](Person),
		As[*yamlfile.Error](Usage),
		Is(images.ErrDockerfile, Usage),
		Is(images.ErrHelper, Environment),
		Is(sandbox.ErrWeak, Boundary),
		Is(sandbox.ErrUnproven, Boundary),
		As[outside](Environment),
		As[*hostfs.ShortWrite](Environment),
		As[syscall.Errno](Environment),
		As[net.Error](Environment),
	}
}

// HintOf is what to do about such an error, "" when that is not known.
func HintOf(err error) string {
	if h := Hint(err); h != "" {
		return h
	}
	var mistake *yamlfile.Error
	var away retry.Unavailable
	var torn *hostfs.ShortWrite // a regular file takes a part only when there is no room for the rest
	switch {
	case errors.As(err, &mistake):
		return mistake.Hint
	case errors.As(err, &away) && away.Person:
		return "see to it with the provider, or choose another agent (docs/agents.md); what was done is kept, and the same command goes on from there"
	case errors.Is(err, retry.ErrUnavailable):
		return "what was done is kept; run the same command then: it goes on from there"
	case errors.Is(err, retry.ErrLogin):
		return "put a valid key into .env (the environment is asked after it), then run the same command again"
	case errors.Is(err, retry.ErrModel):
		return "name a model that the provider has, in full, in .abl/config.yaml (models.builder, models.verifier), then run the same command again"
	case errors.Is(err, retry.ErrDenied):
		return "no key is at fault: the gateway lets through one model, by its full name, and what docs/gateway.md lists; change models or the agent in .abl/config.yaml, then run the same command again"
	case errors.Is(err, retry.ErrBudget):
		return "raise the cap in .abl/config.yaml (budget, limits.requests) and run the same command again, or add --budget-usd +5 or --budget-tokens +500000 to it"
	case errors.Is(err, agent.ErrPrompt):
		return "nothing was asked of it; shorten .abl/project.md or the specs, or choose another agent"
	case errors.Is(err, hostfs.ErrHeld):
		return "wait for it, or stop it; the lock is freed when it ends"
	case errors.Is(err, retry.ErrUnproven):
		return "the call is kept and entered in tokens.csv; abl doctor --boundary looks at it again"
	case errors.Is(err, roles.ErrHolder):
		return "run the same command again: it makes another"
	case errors.Is(err, sandbox.ErrUnproven):
		return "nothing was started in there; abl doctor --boundary looks at it again"
	case errors.Is(err, roles.ErrNoRoom), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.As(err, &torn):
		return "make room on the disk, then run the same command again"
	}
	return ""
}

// outside is an error of work on the engine: unless it is known better, the
// environment failed and not abl.
type outside struct{ error }

func (o outside) Unwrap() error { return o.error }

// OnEngine marks the error of work on the engine, if there is one.
func OnEngine(err error) error {
	if err == nil {
		return nil
	}
	return outside{err}
}
