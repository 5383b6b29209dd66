package roles

import (
	"context"
	"encoding/json"
	"fmt"

	"abl/orchestrator/dirs"
	"abl/orchestrator/sandbox"
	"abl/roles/agent"
)

// lastWords reads what abl-run said of the end in the engine's log.
func (r *Runner) lastWords(ctx context.Context, j Job) (end dirs.RunEnd) {
	data, err := r.Engine.Logs(ctx, r.name(j), 4<<10)
	if err != nil {
		return end
	}
	lines := splitLines(data)
	for i := len(lines) - 1; i >= 0; i-- {
		if json.Unmarshal(lines[i], &end) == nil {
			return end
		}
	}
	return dirs.RunEnd{}
}

// classify decides how a call ended: by the agent's own proper end, unless its
// output was cut or nobody knows its exit code; then by what abl did, then by
// the engine's flag, then by signals and codes.
func classify(exit sandbox.Exit, killed Class, end dirs.RunEnd, res agent.Result, r *Runner) (Class, string) {
	switch {
	case res.Finished && killed != Flood && killed != Lost:
		return Done, ""
	case killed == Timeout, end.Deadline:
		return Timeout, fmt.Sprintf("stopped after %s (loop.call_timeout)", r.Timeout)
	case killed == Flood:
		return Flood, fmt.Sprintf("stopped: it printed more than %d bytes (limits.output)", r.Output)
	case killed == Interrupted:
		return Interrupted, "stopped on request"
	case killed == Lost:
		return Lost, "its container was removed by somebody else"
	case res.Trouble == agent.Away:
		return Away, res.Reason
	case res.Trouble == agent.Login:
		return Refused, res.Reason
	case exit.OOMKilled:
		return OutOfMemory, "out of memory (limits.memory)"
	case end.Error != "":
		return Failed, "could not be started: " + end.Error
	case end.Signal != "":
		return Crashed, "ended by signal " + end.Signal
	case res.Reason != "":
		return Failed, res.Reason
	}
	return Failed, fmt.Sprintf("ended with exit code %d and no result", exit.Code)
}
