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
	"abl/internal/testing/failpoint"
	"abl/internal/wording"
	"abl/roles"
	"abl/roles/agent"
	"abl/roles/boundary"
	"abl/roles/call"
	"abl/roles/environment"
)

// Caller makes the calls of a session. It returns the result of a call that has ended under the same
// key without making it again.
type Caller interface {
	Ask(context.Context, Call) (Happened, error) // calls an agent
	Try(context.Context, Call) (Happened, error) // runs the agent's program
}

// Call is the next call of a state.
type Call struct {
	State
	Prompt string
	Dir    string // the cycle's folder, which is all that the container sees
}

// Session runs a learning session.
type Session struct {
	Home  Home
	Calls Caller
	Show  func(text string)      // shows whole lines to the user
	Hosts []string               // that an author can reach in addition to the model
	Admit func(key string) error // checks whether a new call may be paid
	// Removes secrets and control characters from texts of agents.
	Clean  func(string) string
	Policy func() call.Policy // for the current time
	Sleep  func(context.Context, time.Duration, time.Time) error
}

// Play continues from s until the session is done. It saves each step.
func (x *Session) Play(ctx context.Context, s State) (State, error) {
	heard := false // a call of this run reached its provider
	for shown := 0; s.Step != Done; {
		if err := ctx.Err(); err != nil {
			return s, err
		}
		if shown != s.Cycle && s.Step != Finish {
			x.Show(cycleText(s))
			shown = s.Cycle
		}
		if err := x.waitOut(ctx, s); err != nil {
			return s, err
		}
		h, err := x.act(ctx, s)
		if err != nil {
			return s, err
		}
		policy := x.Policy()
		if phases[s.Step].file != "" { // a call
			policy.NoRoute = h.Unheard && !heard
			heard = heard || !h.Unheard
		}
		next, stop := After(s, h, policy)
		if err := next.Save(x.Home); err != nil {
			return s, err
		}
		failpoint.Here("learn.saved")
		if stop != nil {
			return next, stop
		}
		if s.Step == Keep {
			x.Show(reportText(next.Log[s.Cycle-1]))
		}
		s = next
	}
	return s, nil
}

// note shows a note.
func (x *Session) note(text string) { x.Show("  " + wording.OneLine(text) + "\n") }

// waitOut waits before a call until the outage's wait is over.
func (x *Session) waitOut(ctx context.Context, s State) error {
	w := x.Policy()
	wait := call.Left(s.Outage, w.Now)
	if wait <= 0 {
		return nil
	}
	until := w.Now.Add(wait)
	why := call.Words(s.Outage, s.Note, w.Budget)
	x.note(fmt.Sprintf("waits until %s UTC: %s", until.UTC().Format(time.TimeOnly), why))
	return x.Sleep(ctx, wait, until)
}

// act does one step.
func (x *Session) act(ctx context.Context, s State) (h Happened, err error) {
	if phases[s.Step].title != "" {
		x.Show(stepText(s))
	}
	switch s.Step {
	case Run:
		return x.try(ctx, s)
	case Keep:
		h.Version, err = x.Home.saveLessons(s, x.Policy().Now)
	case Finish:
		if best := s.Best(); best > 0 {
			var left []string
			left, err = x.Home.publish(best)
			for _, what := range left {
				x.note(x.Home.Rel(x.Home.Code()) + " lacks " + x.Clean(what))
			}
		}
	default:
		if h, err = x.ask(ctx, s); err == nil && h.What != "" {
			x.note("no answer: " + h.What)
		}
	}
	return h, err
}

// ask calls the agent and writes its answer.
func (x *Session) ask(ctx context.Context, s State) (h Happened, err error) {
	a := Call{State: s, Dir: x.Home.Cycle(s.Cycle)}
	if a.Prompt, err = x.Home.prompt(s, x.Hosts); err != nil {
		return h, err
	}
	a.Prompt = x.Clean(a.Prompt)
	rec := roles.Record{Dir: x.Home.Project().Call(s.Key())}
	_, ended, err := rec.Outcome()
	if err == nil && !ended && !rec.Started() { // a new call
		if err = x.Admit(s.Key()); err == nil && s.Step == Generate {
			err = errors.Join(hostfs.Remove(x.Home.Root, filepath.Base(a.Dir)), os.MkdirAll(a.Dir, 0o755))
		}
	}
	if err != nil {
		return h, err
	}
	if h, err = x.Calls.Ask(ctx, a); err == nil && s.Step == Improve {
		var merr error
		_, h.Remembers, err = x.Home.merged(MemoryFile, s.Last().Learned)
		_, h.Avoids, merr = x.Home.merged(MistakesFile, s.Last().Mistaken)
		err = errors.Join(err, merr)
	}
	if err != nil {
		return h, err
	}
	h.Text, h.What = x.Clean(h.Text), x.Clean(h.What)
	text := h.Text
	if h.Class != outcome.Done {
		text = strings.TrimRight(text, "\n") + fmt.Sprintf("\n[no answer: %s: %s]\n", h.Class, h.What)
	}
	err = x.Home.note(s.Cycle, phases[s.Step].file, text)
	if s.Step == Generate {
		err = errors.Join(err, x.Home.note(s.Cycle, promptFile, a.Prompt))
	}
	return h, err
}

// try runs the program if there is one.
func (x *Session) try(ctx context.Context, s State) (h Happened, err error) {
	dir := x.Home.Cycle(s.Cycle)
	if _, err := os.Lstat(filepath.Join(dir, runFile)); err != nil {
		return Happened{Ran: &Ran{Reason: "there is no " + runFile}}, nil
	}
	if h, err = x.Calls.Try(ctx, Call{State: s, Dir: dir}); h.Ran != nil {
		h.Ran.Output, h.Ran.Reason = x.Clean(h.Ran.Output), x.Clean(h.Ran.Reason)
	}
	return h, err
}

// Limits of the output of agents and programs that abl reads, and of a program's resources.
const (
	maxAnswer     = 64 << 20
	maxPrinted    = 16 << 10
	programTmp    = 1 << 30
	programPrints = 8 << 20
	programWall   = RunTime + time.Minute // a busy engine needs time
)

// Containers is a Caller that runs calls in containers, which only see the cycle's folder.
type Containers struct {
	Env    *environment.Environment
	Agent  agent.Agent
	Model  string // its full name
	Effort string // "" for the agent's own default
	Image  string // of the agent, and of the programs that it writes
	// The gateway to the model; nil without one.
	Gate       *environment.Gate
	AuthorGate *environment.Gate // of a call that writes a program
	Out        state.Sink
	// Adds an ended call to the ledger.
	Enter func(cycle int, o roles.Outcome) error
}

// Ask implements Caller. Only the step Generate can change the folder.
func (c *Containers) Ask(ctx context.Context, a Call) (h Happened, err error) {
	o, err := c.run(ctx, a, c.job(a))
	if err != nil {
		return h, err
	}
	e := o.Evidence
	h.Fault = outcome.Fault{Class: o.Class, What: o.Reason, Back: e.Back, Paid: e.Paid, Grown: e.Grown}
	h.Unheard, h.SpentMS = o.Class == outcome.Network && o.Requests == 0, o.Duration
	if o.Class == outcome.Timeout {
		h.What = fmt.Sprintf("it did not end within %s", CallTime)
	}
	said, err := tail(roles.Record{Dir: c.Env.Project.Call(a.Key())}, "stdout", maxAnswer)
	h.Text = agent.Usages(c.Agent, []byte(said), 0).Said
	// Not every question needs a tool.
	if o.Class == outcome.Nothing && o.Exit == 0 && strings.TrimSpace(h.Text) != "" {
		o.Class, h.Class, h.What = outcome.Done, outcome.Done, ""
	}
	return h, errors.Join(err, c.Enter(a.Cycle, o))
}

// job returns the job of a question.
func (c *Containers) job(a Call) call.Job {
	job := call.Job{
		Role: roles.Role{Sealed: a.Step != Generate}, Agent: c.Agent,
		Call: agent.Call{
			Step:    a.Cycle,
			Attempt: a.Attempt,
			Model:   c.Model,
			Effort:  c.Effort,
			Session: call.NewSession(),
			Prompt:  helper.Prompt,
			NoSpecs: true,
		},
	}
	gate := map[bool]*environment.Gate{true: c.AuthorGate, false: c.Gate}[a.Step == Generate]
	if gate != nil { // without a gateway it gets no network
		job.Gate, job.Files, job.Place = gate, gate.Files, boundary.PlaceBuilder
	}
	return job
}

// Try implements Caller.
func (c *Containers) Try(ctx context.Context, a Call) (h Happened, err error) {
	job := call.Job{Role: roles.Role{Sealed: true, Tmp: programTmp}, Agent: program, Limit: RunTime}
	o, err := c.run(ctx, a, job)
	h.Class = o.Class
	if err != nil || h.Class == outcome.Interrupted {
		return h, err
	}
	h.Ran = ranOf(o)
	h.Ran.Output, err = printed(roles.Record{Dir: c.Env.Project.Call(a.Key())})
	return h, err
}

// run runs one container to its end. Meanwhile the container's user owns the cycle's folder.
func (c *Containers) run(ctx context.Context, a Call, job call.Job) (o roles.Outcome, err error) {
	step := string(a.Step)
	job.Role.Name, job.Role.Verb, job.Role.Dir, job.Role.TmpExec, job.Role.NoSpecs = step, step, helper.Src, true, true
	job.Call.ID, job.Call.Role, job.Call.Dir = a.Key(), step, helper.Src
	job.Call.Phase, job.Call.Iteration = a.Session, a.Cycle
	job.Image, job.Prompt = c.Image, func() (string, string, error) { return a.Prompt, "", nil }
	p := c.Env.Project
	p.Src = a.Dir
	r := c.Env.Runner(p, c.Out)
	r.Timeout = CallTime
	if a.Step == Run {
		// A program may be silent.
		r.Timeout, r.Output, r.Idle = programWall, programPrints, 0
	}
	if job.Role.Sealed {
		r.Quota = roles.DiskQuota{}
	}
	owners, err := hostfs.OwnershipOf(p.Root, r.UID, r.GID)
	if err != nil {
		return o, err
	}
	owners.Mode = 0o755
	if err := os.Chmod(a.Dir, os.FileMode(owners.Mode)); err != nil {
		return o, err
	}
	if r.Root {
		// The project's owner owns it before and afterwards.
		if err := hostfs.ChownToRole(a.Dir, owners); err != nil {
			return o, err
		}
	}
	o, err = r.Run(ctx, job)
	found, returned := hostfs.ChownBack(a.Dir, owners)
	for _, what := range found {
		c.Env.Note(filepath.Base(a.Dir) + ": " + what)
	}
	if err != nil {
		return o, err
	}
	return o, returned
}

// tail returns the end of a file in a record.
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

// program runs the agent's program in a copy of its folder in memory, which ends with the container.
// For the Runner it is an agent without output.
var program = agent.Program("program", agent.Command{
	Argv: []string{"/bin/bash", "-c", copyAndRun}, Env: map[string]string{"PORT": "3000"},
})

// copyAndRun is the command of the program's container. The copy counts towards the time limit. The
// separate limit of the copy ensures that abl does not take it for a running server.
const copyAndRun = `mkdir /tmp/program && timeout 8 cp -a . /tmp/program/ || { echo "cannot copy the folder to /tmp within 8 seconds and 1 GiB" >&2; exit 125; }
cd /tmp/program && exec bash run.sh`

// ranOf converts the outcome of a program.
func ranOf(o roles.Outcome) *Ran {
	running := o.Class == outcome.Running
	ran := &Ran{Exit: o.Exit, Ports: o.Ports, Running: running, OK: running || o.Class == outcome.Done}
	if !ran.OK {
		ran.Reason = cmp.Or(map[outcome.Outcome]string{
			outcome.Failed:  fmt.Sprintf("it ended with exit code %d", o.Exit),
			outcome.Flood:   fmt.Sprintf("it printed more than %d MiB", programPrints>>20),
			outcome.Timeout: "it could not be stopped in time",
		}[o.Class], strings.TrimSpace(o.Reason))
	}
	return ran
}

// printed returns the end of a program's output, errors last.
func printed(rec roles.Record) (string, error) {
	out, err := tail(rec, "stdout", maxPrinted)
	stderr, serr := tail(rec, "stderr", maxPrinted)
	return strings.TrimSpace(strings.TrimSpace(out) + "\n" + strings.TrimSpace(stderr)), errors.Join(err, serr)
}
