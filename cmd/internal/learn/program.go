package learn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"abl/internal/hostfs"
	"abl/orchestrator/dirs"
	"abl/orchestrator/learner"
	"abl/roles"
	"abl/roles/agent"
)

// program starts what an agent wrote, in a copy of its folder in memory: whatever
// it does there is gone with its container.
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

// Bounds of a program's run besides its time.
const (
	programTmp    = 1 << 30
	programPrints = 8 << 20
	programWall   = learner.RunTime + time.Minute // an engine under load takes its time
)

// Try implements learner.Trier.
func (b *bench) Try(ctx context.Context, t learner.Trial) (learner.Ran, error) {
	role := roles.Role{Name: string(learner.Run), Verb: string(learner.Run), Dir: dirs.Src, TmpExec: true, Alone: true, Sealed: true, Tmp: programTmp}
	join, err := b.site.Holder(ctx, roles.PlaceApp)
	if err != nil {
		return learner.Ran{}, err
	}
	p := b.at(t.Dir)
	job := roles.Job{
		Role: role, Agent: program{}, Image: b.image, Join: join, Limit: learner.RunTime,
		Call:   agent.Call{ID: t.Key, Role: role.Name, Phase: t.Session, Iteration: t.Cycle, Dir: role.Dir},
		Prompt: func() (string, error) { return "", nil },
	}
	o, err := b.run(ctx, p, t.Dir, job, programWall, programPrints)
	if err != nil {
		return learner.Ran{}, err
	}
	ran, err := judgeRun(o)
	if err == nil {
		ran.Output, err = printed(roles.Record{Dir: p.Call(t.Key)})
	}
	return ran, err
}

// judgeRun says what the end of a program means.
func judgeRun(o roles.Outcome) (learner.Ran, error) {
	ran := learner.Ran{Exit: o.Exit, Ports: o.Ports}
	switch o.Class {
	case roles.Done:
		ran.OK = true
	case roles.Running:
		ran.OK, ran.Running = true, true
	case roles.Interrupted:
		return ran, learner.ErrInterrupted
	case roles.Failed:
		ran.Reason = fmt.Sprintf("it ended with exit code %d", o.Exit)
	case roles.Flood:
		ran.Reason = fmt.Sprintf("it printed more than %d MiB", programPrints>>20)
	case roles.Timeout:
		ran.Reason = "it could not be stopped in time"
	default:
		ran.Reason = strings.TrimSpace(o.Reason)
	}
	return ran, nil
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

func tail(dir, name string, most int64) (string, error) {
	f, err := hostfs.Open(dir, name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return "", err
	}
	from := max(fi.Size()-most, 0)
	data, err := io.ReadAll(io.NewSectionReader(f, from, most))
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return strings.ToValidUTF8(string(data), ""), nil
}
