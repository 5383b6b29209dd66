package roles

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"abl/internal/helper"
	"abl/internal/outcome"
	"abl/internal/prices"
	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/internal/testing/failpoint"
	"abl/roles/agent"
)

// Runner runs calls of one project on one engine.
type Runner struct {
	*Boxes
	Project state.Project
	Person  [2]int        // uid and gid of the project's owner
	Output  int64         // bytes a call may print before it is killed
	Timeout time.Duration // wall clock of one call
	Idle    time.Duration // how long a call may do nothing, 0 for ever
	Quota   DiskQuota
	// Of what an agent counted itself; nil where nobody knows.
	Price func(agent.Usage) (prices.USD, bool)
	Out   state.Sink
}

// Job is one call to run.
type Job struct {
	Role   Role
	Agent  agent.Agent
	Call   agent.Call
	Round  int // for the events of the call
	Image  string
	Place  string       // whose network it joins, "" for none
	Env    []string     // beyond the agent's own: the app's address
	Gate   Gate         // nil: there is no way out
	Trials []ServiceBox // stand beside it
	// Name → content, laid into the call's read-only directory.
	Files map[string][]byte
	Cmds  helper.CmdSpec
	// What still runs so long after its start has done well and is ended; 0 for no such limit.
	Limit  time.Duration
	Prompt func() (string, error) // asked only when the call has not begun
}

// Run takes a call to its end: it starts it, or attaches to it when an earlier
// abl started it, or returns the outcome that is already on disk. The outcome
// is durable before the call's box is removed.
func (r *Runner) Run(ctx context.Context, j Job) (Outcome, error) {
	rec := Record{r.Project.Call(j.Call.ID)}
	if o, ok, err := rec.Outcome(); err != nil || ok {
		if ok {
			err = r.clear(ctx, j)
		}
		return o, err
	}
	intent, err := r.takeUp(ctx, j, rec)
	if err != nil {
		return Outcome{}, err
	}
	o := Outcome{Key: j.Call.ID, Role: j.Role.Name, Agent: intent.Agent, Model: intent.Model, Effort: intent.Effort, Session: intent.Session, Started: intent.Begun, Requests: -1}
	if err := r.follow(ctx, j, rec, intent, &o); err != nil {
		return o, err
	}
	return o, r.close(ctx, j, rec, intent, &o)
}

// surround makes what a call that ends at a time finds there: its network and services. One
// that is attached to has them.
func (r *Runner) surround(ctx context.Context, j Job, ends time.Time) error {
	if err := r.Holder(ctx, j.Place); err != nil {
		return err
	}
	const spare = 5 * time.Minute // to begin the call, and to end it
	return r.held(ctx, j, r.Boxes.Trials(ctx, j.Trials, j.Call.ID, ends.Add(StartTime(j.Trials)+spare)))
}

// clear takes a call off the engine.
func (r *Runner) clear(ctx context.Context, j Job) error {
	return errors.Join(r.Engine.Remove(ctx, r.box(j)), r.EndTrials(ctx, j.Trials))
}

// box is the name of a call's box.
func (r *Runner) box(j Job) string { return r.name(j.Call.ID) }

// takeUp finds a call that an earlier abl started, or begins it. A box that was started and
// is gone is left to follow, which reads what it printed. One that was made and never started
// does not go on and is made anew: its deadline runs already.
func (r *Runner) takeUp(ctx context.Context, j Job, rec Record) (Intent, error) {
	intent, begun, err := rec.Intent()
	if err == nil && !begun && rec.Started() {
		intent, err = r.lostIntent(j, rec)
		begun = true
	}
	if err != nil {
		return intent, err
	}
	st, err := r.Engine.Status(ctx, r.box(j))
	gone := errors.Is(err, sandbox.ErrNotFound)
	switch {
	case err != nil && !gone:
		return intent, err
	case begun && gone && rec.Started():
		return intent, nil
	case begun && !gone && st.State != sandbox.Created:
		r.emit(j, state.Event{Kind: state.CallResume})
		if j.Gate != nil {
			err = j.Gate.Resume(ctx, j.Call.ID)
		}
		if err == nil {
			err = r.proven(ctx, j, rec, r.proving(j, rec, sandbox.Box{Name: r.box(j)}).after(ctx, false))
		}
		return intent, r.held(ctx, j, err)
	case ctx.Err() != nil:
		return intent, fmt.Errorf("cannot start the %s: %w", j.Role.Name, ctx.Err())
	}
	if err := r.surround(ctx, j, time.Now().Add(r.Timeout)); err != nil {
		return intent, err
	}
	// What is asked of the engine from here on happens even if the asking is cut
	// short, so it is seen through; a cancelled ctx ends the call right afterwards.
	intent, err = r.begin(context.WithoutCancel(ctx), j, rec)
	return intent, r.held(ctx, j, err)
}

// held is the package's held for the holder of a call, once that was made and proven.
func (r *Runner) held(ctx context.Context, j Job, err error) error {
	return held(ctx, r.Engine, r.joined(j.Place).Join, err)
}

// lostIntent closes a call that was started and whose intent is lost: abl no longer knows with what
// it was started, so it is stopped, counted as lost and made again as the next attempt.
func (r *Runner) lostIntent(j Job, rec Record) (Intent, error) {
	intent := r.intent(j)
	intent.Session = "" // another one than the call's
	err := rec.Stop(outcome.Lost)
	if err == nil {
		err = rec.Write(intentFile, intent)
	}
	return intent, err
}

// intent is what a call that begins now is started with.
func (r *Runner) intent(j Job) Intent {
	return Intent{
		Key: j.Call.ID, Box: r.box(j), Image: j.Image, Agent: j.Agent.Name, Model: j.Call.Model,
		Effort:  j.Call.Effort,
		Session: j.Call.Session, Begun: time.Now().UTC(), Reports: helper.ReportsIn(j.Role.Workspace(r.Project), j.Role.Reports),
	}
}

// begin makes the call's box and starts it. That it is started is on disk
// before it is: a box that is gone later on may have spent tokens.
func (r *Runner) begin(ctx context.Context, j Job, rec Record) (Intent, error) {
	if err := r.Quota.hasRoom(); err != nil {
		return Intent{}, err
	}
	intent, box, err := r.prepare(ctx, j, rec)
	if err != nil {
		return intent, err
	}
	var measuring sync.WaitGroup
	var unmeasured error
	measuring.Go(func() { unmeasured = r.measureFirst(ctx, j, rec) })
	defer measuring.Wait()
	proof := r.proving(j, rec, box)
	made := func() error {
		failpoint.Here("call.created")
		measuring.Wait()
		return unmeasured
	}
	ready := func() error {
		r.emit(j, state.Event{Kind: state.CallStart})
		err := rec.markStarted()
		failpoint.Here("call.starting")
		return err
	}
	return intent, r.proven(ctx, j, rec, proof.launch(ctx, made, ready))
}

// proving is the proof of a call's box.
func (r *Runner) proving(j Job, rec Record, box sandbox.Box) proving {
	return proving{Boxes: r.Boxes, project: r.Project, box: box, dir: rec.Dir, rule: ofRole(j.Role, r.Project, r.ID, rec.Dir, r.Port != 0), secret: r.Safe}
}

// proven takes a call back when the engine says that its box never ran: a start that
// failed is forgotten, and a box whose boundary is not proven removed. One that ran may
// have been paid for: it is ended, and follow makes an outcome of it. Where the engine
// cannot be asked the next run finds out.
func (r *Runner) proven(ctx context.Context, j Job, rec Record, err error) error {
	if err == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	st, serr := r.Engine.Status(ctx, r.box(j))
	switch unproven := errors.Is(err, sandbox.ErrUnproven); {
	case !unproven && serr == nil && st.State == sandbox.Created:
		return errors.Join(err, rec.unmark())
	case !unproven:
		return err
	case errors.Is(serr, sandbox.ErrNotFound) && rec.Started():
		return nil
	case serr != nil && !errors.Is(serr, sandbox.ErrNotFound):
		return serr // the next run asks again
	case serr != nil || st.State == sandbox.Created:
		return errors.Join(fmt.Errorf("call %s: %w", j.Call.ID, err), r.Engine.Remove(ctx, r.box(j)), rec.unmark())
	}
	why := stopped{Class: outcome.Unproven, Reason: strings.TrimPrefix(err.Error(), sandbox.ErrUnproven.Error()+": ")}
	if herr := r.held(ctx, j, err); errors.Is(herr, ErrKilled) {
		why = stopped{Class: outcome.EngineGone, Reason: herr.Error()}
	}
	if err := rec.stop(why); err != nil {
		return err
	}
	return r.Engine.Stop(ctx, r.box(j), 0)
}

// prepare lays out the record, and says what the box is to be.
func (r *Runner) prepare(ctx context.Context, j Job, rec Record) (intent Intent, box sandbox.Box, err error) {
	if err := rec.unmark(); err != nil {
		return intent, box, err
	}
	if err := r.Engine.Remove(ctx, r.box(j)); err != nil {
		return intent, box, err
	}
	cmd, err := j.Agent.Command(j.Call)
	if err != nil {
		return intent, box, err
	}
	deadline := time.Now().Add(r.Timeout + time.Minute)
	if err := r.layOut(j, rec, cmd, deadline); err != nil {
		return intent, box, fmt.Errorf("cannot prepare call %s: %w", j.Call.ID, err)
	}
	if err := r.pointLast(j, rec); err != nil {
		return intent, box, fmt.Errorf("cannot point at the log of call %s: %w", j.Call.ID, err)
	}
	intent = r.intent(j)
	if err := rec.Write(intentFile, intent); err != nil {
		return intent, box, err
	}
	failpoint.Here("call.intent")
	if j.Gate != nil {
		way, err := j.Gate.Open(ctx, j.Call.ID, j.Call.Model, deadline)
		if err != nil {
			return intent, box, fmt.Errorf("cannot make the %s's way out: %w", j.Role.Name, err)
		}
		j.Env = append(j.Env[:len(j.Env):len(j.Env)], way...)
	}
	return intent, r.boxFor(j, rec, cmd, deadline), nil
}

// boxFor is the call's container as intent.
func (r *Runner) boxFor(j Job, rec Record, cmd agent.Command, deadline time.Time) sandbox.Box {
	box := r.worker(j.Call.ID, j.Image, j.Place, r.Labels("role", j.Role.Name, j.Call.ID, deadline))
	box.Labels[sandbox.LabelPhase] = strconv.Itoa(j.Call.Phase)
	box.Env = append(box.Env, "ABL_PHASE="+strconv.Itoa(j.Call.Phase), "ABL_ITERATION="+strconv.Itoa(j.Call.Iteration), "ABL_SPECS="+helper.Specs)
	for _, k := range slices.Sorted(maps.Keys(cmd.Env)) {
		box.Env = append(box.Env, k+"="+cmd.Env[k])
	}
	box.Env = append(box.Env, j.Env...)
	box.Argv, box.Dir = []string{helper.Bin + "/" + helper.HelperRun, helper.Run}, j.Role.Dir
	box.Mounts, box.Tmpfs = Mounts(j.Role, r.Project, rec), r.Spaces.tmpfs(j.Role)
	return box
}

func (r *Runner) emit(j Job, e state.Event) {
	e.Time, e.Phase, e.Iteration, e.Step = time.Now().UTC(), j.Call.Phase, j.Call.Iteration, j.Call.Step
	e.Round = j.Round
	e.Role, e.Call, e.Agent, e.Model = j.Role.Name, j.Call.ID, j.Agent.Name, cmp.Or(e.Model, j.Call.Model)
	r.Out.Emit(e)
}

// NewSession is a random UUID (RFC 9562, version 4), as agents want their sessions named.
func NewSession() string {
	b := make([]byte, 16)
	rand.Read(b) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
