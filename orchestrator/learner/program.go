package learner

import (
	"fmt"
	"strings"

	"abl/internal/outcome"
	"abl/roles"
	"abl/roles/agent"
)

// program starts what an agent wrote, in a copy of its folder in memory: whatever it
// does there is gone with its container. To the runner it is an agent that says nothing.
type program struct{}

// copyAndRun is what its container runs. The copy counts towards the time, but a
// folder that is still being copied at its end is no server.
const copyAndRun = `mkdir /tmp/program && timeout 8 cp -a . /tmp/program/ || { echo "the folder cannot be copied within 8 seconds into 1 GiB" >&2; exit 125; }
cd /tmp/program && exec bash run.sh`

func (program) Name() string         { return "program" }
func (program) Image() string        { return "tools" }
func (program) Version() string      { return "" }
func (program) DefaultModel() string { return "" }

// Command starts run.sh with nothing on its standard input.
func (program) Command(agent.Call) (agent.Command, error) {
	return agent.Command{Argv: []string{"/bin/bash", "-c", copyAndRun}, Env: map[string]string{"PORT": "3000"}}, nil
}

// NewReader reads nothing: what a program prints says nothing to abl.
func (program) NewReader(agent.Call) agent.Reader { return program{} }

// Line implements agent.Reader.
func (program) Line([]byte, bool) string { return "" }

// Result implements agent.Reader: the exit code alone decides.
func (program) Result(code int) agent.Result {
	return agent.Result{Finished: code == 0, Requests: -1}
}

// ranOf says what the end of a program means.
func ranOf(o roles.Outcome) *Ran {
	ran := &Ran{Exit: o.Exit, Ports: o.Ports}
	switch o.Class {
	case outcome.Done:
		ran.OK = true
	case outcome.Running:
		ran.OK, ran.Running = true, true
	case outcome.Failed:
		ran.Reason = fmt.Sprintf("it ended with exit code %d", o.Exit)
	case outcome.Flood:
		ran.Reason = fmt.Sprintf("it printed more than %d MiB", programPrints>>20)
	case outcome.Timeout:
		ran.Reason = "it could not be stopped in time"
	default:
		ran.Reason = strings.TrimSpace(o.Reason)
	}
	return ran
}

// printed is the end of what a program printed, errors last.
func printed(rec roles.Record) (string, error) {
	var parts []string
	for _, name := range []string{"stdout", "stderr"} {
		text, err := tail(rec.Dir, name, maxPrinted)
		if err != nil {
			return "", err
		}
		if text = strings.TrimSpace(text); text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "\n"), nil
}
