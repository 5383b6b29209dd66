package main

import (
	"errors"
	"io/fs"
	"net"
	"syscall"

	"abl/cmd/internal/exit"
	"abl/cmd/internal/ground"
	"abl/images"
	"abl/internal/atomicfile"
	"abl/internal/filelock"
	"abl/internal/strictyaml"
	"abl/orchestrator"
	"abl/orchestrator/ledger"
	"abl/orchestrator/project"
	"abl/orchestrator/sandbox"
	"abl/orchestrator/state"
	"abl/orchestrator/workspace"
	"abl/roles"
	"abl/roles/agent"
)

// rules say which exit code an error means that does not bring its own. What
// the environment did comes last: a person's mistake may have a file's error
// as its cause.
func rules() exit.Rules {
	return exit.Rules{
		exit.Is(orchestrator.ErrAgent, exit.Agent),
		exit.Is(orchestrator.ErrLogin, exit.Agent),
		exit.Is(agent.ErrNoCall, exit.Agent),
		exit.Is(orchestrator.ErrAway, exit.Away),
		exit.Is(orchestrator.ErrChanged, exit.Person),
		exit.As[orchestrator.Edited](exit.Person),
		exit.Is(orchestrator.ErrMoved, exit.Person),
		exit.Is(roles.ErrService, exit.Environment),
		exit.Is(roles.ErrSource, exit.Person),
		exit.Is(roles.ErrNoRoom, exit.Environment),
		exit.Is(orchestrator.ErrBudget, exit.Budget),
		exit.Is(filelock.ErrHeld, exit.Busy),
		exit.Is(workspace.ErrForeign, exit.Person),
		exit.Is(workspace.ErrTooLarge, exit.Person),
		exit.As[*state.Damaged](exit.Person),
		exit.As[*state.Newer](exit.Person),
		exit.As[*ledger.Foreign](exit.Person),
		exit.Is(project.ErrNone, exit.Usage),
		exit.As[*strictyaml.Error](exit.Usage),
		exit.Is(images.ErrDockerfile, exit.Usage),
		exit.Is(images.ErrHelper, exit.Environment),
		exit.Is(sandbox.ErrWeak, exit.Boundary),
		exit.Is(sandbox.ErrUnproven, exit.Boundary),
		exit.As[outside](exit.Environment),
		exit.As[*atomicfile.ShortWrite](exit.Environment),
		exit.As[syscall.Errno](exit.Environment),
		exit.As[net.Error](exit.Environment),
	}
}

// fault gives err an exit code of its own and says what to do about it.
func fault(code int, err error, hint string) error { return exit.With(code, err, hint) }

// outside is an error of work on the engine: unless it is known better, the
// environment failed and not abl.
type outside struct{ error }

func (o outside) Unwrap() error { return o.error }

// onEngine marks the error of work on the engine, if there is one.
func onEngine(err error) error {
	if err == nil {
		return nil
	}
	return outside{err}
}

// hint is what to do about an error.
func hint(err error) string {
	if h := exit.Hint(err); h != "" {
		return h
	}
	var mistake *strictyaml.Error
	var edited orchestrator.Edited
	var away orchestrator.Absent
	var torn *atomicfile.ShortWrite // a regular file takes a part only when there is no room for the rest
	switch {
	case errors.As(err, &edited):
		return edited.Hint()
	case errors.As(err, &mistake):
		return mistake.Hint
	case errors.Is(err, orchestrator.ErrAgent):
		return "everything is kept; see abl logs, then run the same command again"
	case errors.Is(err, ground.ErrElsewhere):
		return "mount the project into abl's container under the very path that it has on the engine's machine (-v \"$PWD:$PWD\" -w \"$PWD\"), or run abl where the engine is"
	case errors.Is(err, orchestrator.ErrChanged):
		return "nothing of yours was touched; run the same command with --take-mine to commit it as yours and go on from it, or commit it or put it back yourself"
	case errors.As(err, &away) && away.Person:
		return "see to it with the provider, or choose another agent (docs/agents.md); what was done is kept, and the same command goes on from there"
	case errors.Is(err, orchestrator.ErrAway):
		return "what was done is kept and committed; run the same command then: it goes on from there"
	case errors.Is(err, orchestrator.ErrLogin):
		return "put a valid key into .env (the environment is asked after it), then run the same command again"
	case errors.Is(err, orchestrator.ErrBudget):
		return "raise the cap in .abl/config.yaml (budget, limits.requests) and run the same command again, or add --budget-usd +5 or --budget-tokens +500000 to it"
	case errors.Is(err, sandbox.ErrUnproven):
		return "nothing was started in there; abl doctor --boundary looks at it again"
	case errors.Is(err, workspace.ErrTooLarge):
		return "see what an agent left there and remove it, then run the same command again"
	case errors.Is(err, sandbox.ErrUnreachable):
		return "" // it says where it looked and what to do
	case errors.Is(err, fs.ErrPermission):
		return "see whose the file or its folder is: an earlier run as root may have made it"
	case errors.Is(err, roles.ErrNoRoom), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.As(err, &torn):
		return "make room on the disk, then run the same command again"
	}
	return ""
}
