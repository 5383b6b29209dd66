package learner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"abl/internal/helper"
	"abl/internal/hostfs"
	"abl/internal/outcome"
	"abl/internal/state"
	"abl/roles"
	"abl/roles/agent"
	"abl/roles/environment"
)

// Bounds of what is read of an agent's output and of a program's, and of what a
// program may take besides its time.
const (
	maxAnswer     = 64 << 20
	maxPrinted    = 16 << 10
	programTmp    = 1 << 30
	programPrints = 8 << 20
	programWall   = RunTime + time.Minute // an engine under load takes its time
)

// Containers is a Caller whose calls are containers that see the cycle's folder and
// nothing else of the project.
type Containers struct {
	Env        *environment.Environment
	Agent      agent.Agent
	Model      string            // its full name
	Image      string            // of the agent, and of the programs that it writes
	Gate       *environment.Gate // between a question and the model; nil for no way out
	AuthorGate *environment.Gate // of a call that writes a program
	Out        state.Sink
	Enter      func(cycle int, o roles.Outcome) error // puts an ended call into the ledger
}

// Ask implements Caller. The folder can be changed only where a program is written.
func (c *Containers) Ask(ctx context.Context, a Call) (h Happened, err error) {
	o, err := c.run(ctx, a, c.job(a))
	if err != nil {
		return h, err
	}
	h = Happened{Class: o.Class, Reason: o.Reason, Back: o.Evidence.Back, Paid: o.Evidence.Paid, SpentMS: o.Duration}
	if o.Class == outcome.Timeout {
		h.Reason = fmt.Sprintf("it did not end within %s, retries included", CallTime)
	}
	said, err := tail(roles.Record{Dir: c.Env.Project.Call(a.Key())}, "stdout", maxAnswer)
	h.Text = agent.Usages(c.Agent, []byte(said), 0).Said
	if o.Class == outcome.Nothing && o.Exit == 0 && strings.TrimSpace(h.Text) != "" { // not every question needs a tool
		o.Class, h.Class, h.Reason = outcome.Done, outcome.Done, ""
	}
	return h, errors.Join(err, c.Enter(a.Cycle, o))
}

// job is what a question is asked with.
func (c *Containers) job(a Call) roles.Job {
	job := roles.Job{
		Role: roles.Role{Sealed: a.Step != Generate}, Agent: c.Agent,
		Call: agent.Call{Step: a.Cycle, Attempt: a.Attempt, Model: c.Model, Session: roles.NewSession(), Prompt: helper.Prompt, Alone: true},
	}
	gate := map[bool]*environment.Gate{true: c.AuthorGate, false: c.Gate}[a.Step == Generate]
	if gate != nil { // else there is nobody whom it may reach
		job.Gate, job.Files, job.Place = gate, gate.Files, roles.PlaceBuilder
	}
	return job
}

// Try implements Caller.
func (c *Containers) Try(ctx context.Context, a Call) (Happened, error) {
	job := roles.Job{Role: roles.Role{Sealed: true, Tmp: programTmp}, Agent: program, Limit: RunTime}
	o, err := c.run(ctx, a, job)
	if err != nil || o.Class == outcome.Interrupted {
		return Happened{Class: o.Class}, err
	}
	ran := ranOf(o)
	ran.Output, err = printed(roles.Record{Dir: c.Env.Project.Call(a.Key())})
	return Happened{Class: o.Class, Ran: ran}, err
}

// run takes one container to its end, with the cycle's folder lent to whom it runs
// as, and back afterwards.
func (c *Containers) run(ctx context.Context, a Call, job roles.Job) (o roles.Outcome, err error) {
	step := string(a.Step)
	job.Role.Name, job.Role.Verb, job.Role.Dir, job.Role.TmpExec, job.Role.Alone = step, step, helper.Src, true, true
	job.Call.ID, job.Call.Role, job.Call.Dir = a.Key(), step, helper.Src
	job.Call.Phase, job.Call.Iteration = a.Session, a.Cycle
	job.Image, job.Prompt = c.Image, func() (string, error) { return a.Prompt, nil }
	p := c.Env.Project
	p.Src = a.Dir
	r := c.Env.Runner(p, c.Out)
	if r.Timeout = CallTime - time.Duration(a.SpentMS)*time.Millisecond; a.Step == Run {
		r.Timeout, r.Output, r.Idle = programWall, programPrints, 0 // it may be silent as long as it likes
	}
	if job.Role.Sealed {
		r.Quota = roles.DiskQuota{}
	}
	lease, err := hostfs.Plan(p.Root, r.UID, r.GID)
	lease.Mode = 0o755
	if err == nil {
		err = os.Chmod(a.Dir, os.FileMode(lease.Mode))
	}
	if err == nil && r.Root {
		err = hostfs.Lend(a.Dir, lease) // it is the project's owner's before and afterwards
	}
	if err != nil {
		return o, err
	}
	o, err = r.Run(ctx, job)
	found, rerr := hostfs.Return(a.Dir, lease)
	for _, what := range found {
		c.Env.Note(filepath.Base(a.Dir) + ": " + what)
	}
	return o, cmp.Or(err, rerr)
}

// tail is the end of a file in a record.
func tail(rec roles.Record, name string, most int64) (string, error) {
	f, err := hostfs.Open(rec.Dir, name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	end, err := f.Seek(0, io.SeekEnd)
	data, rerr := io.ReadAll(io.NewSectionReader(f, max(end-most, 0), most))
	return strings.ToValidUTF8(string(data), ""), errors.Join(err, rerr)
}

// program starts what an agent wrote, in a copy of its folder in memory: whatever it
// does there is gone with its container. To the runner it is an agent that says nothing.
var program = agent.Program("program", agent.Command{
	Argv: []string{"/bin/bash", "-c", copyAndRun}, Env: map[string]string{"PORT": "3000"},
})

// copyAndRun is what its container runs. The copy counts towards the time, but a
// folder that is still being copied at its end is no server.
const copyAndRun = `mkdir /tmp/program && timeout 8 cp -a . /tmp/program/ || { echo "the folder cannot be copied within 8 seconds into 1 GiB" >&2; exit 125; }
cd /tmp/program && exec bash run.sh`

// ranOf says what the end of a program means.
func ranOf(o roles.Outcome) *Ran {
	ran := &Ran{Exit: o.Exit, Ports: o.Ports, Running: o.Class == outcome.Running, OK: o.Class == outcome.Running || o.Class == outcome.Done}
	if !ran.OK {
		ran.Reason = cmp.Or(map[outcome.Outcome]string{
			outcome.Failed:  fmt.Sprintf("it ended with exit code %d", o.Exit),
			outcome.Flood:   fmt.Sprintf("it printed more than %d MiB", programPrints>>20),
			outcome.Timeout: "it could not be stopped in time",
		}[o.Class], strings.TrimSpace(o.Reason))
	}
	return ran
}

// printed is the end of what a program printed, errors last.
func printed(rec roles.Record) (string, error) {
	out, err := tail(rec, "stdout", maxPrinted)
	voice, verr := tail(rec, "stderr", maxPrinted)
	return strings.TrimSpace(strings.TrimSpace(out) + "\n" + strings.TrimSpace(voice)), errors.Join(err, verr)
}
