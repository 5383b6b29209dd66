package ground

import (
	"errors"
	"net"
	"syscall"

	"abl/cmd/internal/exit"
	"abl/images"
	"abl/internal/hostfs"
	"abl/internal/sandbox"
	"abl/internal/yamlfile"
	"abl/orchestrator/ledger"
	"abl/roles"
	"abl/roles/agent"
	"abl/roles/retry"
)

// Rules say which exit code an error of a call means, or of what it stands on.
// What the environment did comes last: a person's mistake may have a file's error
// as its cause.
func Rules() exit.Rules {
	return exit.Rules{
		exit.Is(retry.ErrAgent, exit.Agent),
		exit.Is(retry.ErrLogin, exit.Agent),
		exit.Is(retry.ErrModel, exit.Agent),
		exit.Is(retry.ErrDenied, exit.Agent),
		exit.Is(agent.ErrNoCall, exit.Agent),
		exit.Is(agent.ErrPrompt, exit.Usage),
		exit.Is(retry.ErrUnavailable, exit.Away),
		exit.Is(retry.ErrBudget, exit.Budget),
		exit.Is(retry.ErrUnproven, exit.Boundary),
		exit.Is(roles.ErrHolder, exit.Environment),
		exit.Is(roles.ErrSource, exit.Person),
		exit.Is(roles.ErrNoRoom, exit.Environment),
		exit.Is(hostfs.ErrHeld, exit.Busy),
		exit.As[*ledger.Foreign](exit.Person),
		exit.As[*yamlfile.Error](exit.Usage),
		exit.Is(images.ErrDockerfile, exit.Usage),
		exit.Is(images.ErrHelper, exit.Environment),
		exit.Is(sandbox.ErrWeak, exit.Boundary),
		exit.Is(sandbox.ErrUnproven, exit.Boundary),
		exit.As[outside](exit.Environment),
		exit.As[*hostfs.ShortWrite](exit.Environment),
		exit.As[syscall.Errno](exit.Environment),
		exit.As[net.Error](exit.Environment),
	}
}

// Hint is what to do about such an error, "" when that is not known.
func Hint(err error) string {
	if h := exit.Hint(err); h != "" {
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
