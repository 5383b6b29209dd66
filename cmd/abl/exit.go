package main

import (
	"errors"
	"io/fs"

	"abl/cmd/internal/exit"
	"abl/internal/git"
	"abl/internal/hostfs"
	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/orchestrator"
	"abl/roles"
	"abl/roles/environment"
	"abl/roles/retry"
)

// rules say which exit code an error means that does not bring its own: those of
// phases, then those of calls and of what they stand on.
func rules() exit.Rules {
	return append(exit.Rules{
		exit.Is(hostfs.ErrLost, exit.Person),
		exit.Is(orchestrator.ErrChanged, exit.Person),
		exit.As[orchestrator.Edited](exit.Person),
		exit.Is(orchestrator.ErrMoved, exit.Person),
		exit.Is(roles.ErrService, exit.Environment),
		exit.Is(git.ErrForeign, exit.Person),
		exit.Is(git.ErrTooLarge, exit.Person),
		exit.Is(git.ErrSecret, exit.Person),
		exit.As[*state.Damaged](exit.Person),
		exit.As[*state.Newer](exit.Person),
		exit.Is(state.ErrNone, exit.Usage),
	}, exit.Calls()...)
}

// fault gives err an exit code of its own and says what to do about it.
func fault(code int, err error, hint string) error { return exit.With(code, err, hint) }

// onEngine marks the error of work on the engine, if there is one.
func onEngine(err error) error { return exit.OnEngine(err) }

// hint is what to do about an error.
func hint(err error) string {
	var edited orchestrator.Edited
	switch h := exit.HintOf(err); {
	case h != "":
		return h
	case errors.As(err, &edited):
		return edited.Hint()
	case errors.Is(err, hostfs.ErrLost):
		return "see who took it away and whether another abl works here; when none does, run the same command again"
	case errors.Is(err, retry.ErrAgent):
		return "everything is kept; see abl logs, then run the same command again"
	case errors.Is(err, environment.ErrElsewhere):
		return "mount the project into abl's container under the very path that it has on the engine's machine (-v \"$PWD:$PWD\" -w \"$PWD\"), or run abl where the engine is"
	case errors.Is(err, orchestrator.ErrChanged):
		return "nothing of yours was touched; run the same command with --take-mine to commit it as yours and go on from it, or commit it or put it back yourself"
	case errors.Is(err, git.ErrSecret):
		return "the call is kept: take the value out of the file and run the same command again, or allow it by its name in .abl/config.yaml, as commit: {allow_secrets: [NAME]}"
	case errors.Is(err, git.ErrTooLarge):
		return "see what an agent left there and remove it, then run the same command again"
	case errors.Is(err, sandbox.ErrUnreachable):
		return "" // it says where it looked and what to do
	case errors.Is(err, fs.ErrPermission):
		return "see whose the file or its folder is: an earlier run as root may have made it"
	}
	return ""
}
