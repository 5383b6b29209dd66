// Package call runs one call of an agent. It assembles the prompt, prepares the files that the agent
// may see, starts the agent in a container, follows it to its end, keeps a record, and decides when to
// repeat a failed call. Each step is idempotent under the call's key.
package call

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"abl/internal/helper"
	"abl/internal/ledger"
	"abl/internal/outcome"
	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/internal/testing/failpoint"
	"abl/roles"
	"abl/roles/agent"
	"abl/roles/boundary"
)

// Runner runs the calls of one project on one engine.
type Runner struct {
	*boundary.Containers
	Project state.Project
	Owner   [2]int        // uid and gid of the project's owner
	Output  int64         // bytes that a call may print before abl stops it
	Timeout time.Duration // wall clock of one call
	Idle    time.Duration // how long a call may be idle, 0 for any time
	Quota   roles.DiskQuota
	Prices  ledger.Prices // for usage that the agent reported without a cost
	Out     state.Sink
}

// Job is one call to run.
type Job struct {
	Role   roles.Role
	Agent  agent.Agent
	Call   agent.Call
	Round  int // for the events of the call
	Image  string
	Place  string                      // the place whose network the container joins, "" for no network
	Env    []string                    // in addition to the agent's variables, such as the app's address
	Gate   roles.Gate                  // nil without a gateway
	Trials []boundary.ServiceContainer // services that run during the call
	// Name → content, written into the call's read-only directory.
	Files map[string][]byte
	Cmds  helper.CmdSpec
	// The program is stopped and counts as successful if it still runs after Limit. 0 is no limit.
	Limit time.Duration
	// Names of files in the workspace that abl removes before the call, so that a file found
	// afterwards is this call's.
	Stale []string
	// Prompt returns the call's prompt and the content of project_map.txt, "" to leave that file
	// as it is. The Runner calls it only if the call has not begun.
	Prompt func() (text, projectMap string, err error)
}

// Run runs a call to its end and returns its outcome. It starts the call, attaches to a call
// that an earlier abl started, or returns the outcome on disk. Run writes the outcome before it
// removes the call's container.
func (r *Runner) Run(ctx context.Context, j Job) (roles.Outcome, error) {
	rec := roles.Record{Dir: r.Project.Call(j.Call.ID)}
	if o, ok, err := rec.Outcome(); err != nil || ok {
		if ok {
			err = r.remove(ctx, j)
		}
		return o, err
	}
	intent, err := r.startOrAttach(ctx, j, rec)
	if err != nil {
		return roles.Outcome{}, err
	}
	o := roles.Outcome{
		Key:      j.Call.ID,
		Role:     j.Role.Name,
		Agent:    intent.Agent,
		Model:    intent.Model,
		Effort:   intent.Effort,
		Session:  intent.Session,
		Started:  intent.Begun,
		Requests: -1,
	}
	if err := r.follow(ctx, j, rec, intent, &o); err != nil {
		return o, err
	}
	return o, r.close(ctx, j, rec, intent, &o)
}

// prepareNetwork starts the network and the services of a call that ends at ends.
func (r *Runner) prepareNetwork(ctx context.Context, j Job, ends time.Time) error {
	if err := r.Holder(ctx, j.Place); err != nil {
		return err
	}
	const spare = 5 * time.Minute // to begin the call, and to end it
	until := ends.Add(boundary.StartTime(j.Trials) + spare)
	return r.HolderEnded(ctx, j.Place, r.Containers.Trials(ctx, j.Trials, j.Call.ID, until))
}

// remove removes the call's container and its services.
func (r *Runner) remove(ctx context.Context, j Job) error {
	return errors.Join(r.Engine.Remove(ctx, r.container(j)), r.EndTrials(ctx, j.Trials))
}

// container returns the name of a call's container.
func (r *Runner) container(j Job) string { return r.Name(j.Call.ID) }

// startOrAttach attaches to a call that an earlier abl started, or starts it. If the container
// was started and is gone, startOrAttach leaves it to follow, which reads its output. If the
// container was created but never started, startOrAttach creates it again, because its deadline
// runs already.
func (r *Runner) startOrAttach(ctx context.Context, j Job, rec roles.Record) (roles.Intent, error) {
	intent, begun, err := rec.Intent()
	if err == nil && !begun && rec.Started() {
		intent, err = r.lostIntent(j, rec)
		begun = true
	}
	if err != nil {
		return intent, err
	}
	st, err := r.Engine.Status(ctx, r.container(j))
	missing := errors.Is(err, sandbox.ErrNotFound)
	switch {
	case err != nil && !missing:
		return intent, err
	case begun && missing && rec.Started():
		return intent, nil
	case begun && !missing && st.State != sandbox.Created:
		r.emit(j, state.Event{Kind: state.CallResume})
		if j.Gate != nil {
			err = j.Gate.Resume(ctx, j.Call.ID)
		}
		if err == nil {
			err = r.handleProof(ctx, j, rec, r.launcher(j, rec, sandbox.ContainerConfig{Name: r.container(j)}).ReadProof(ctx, false))
		}
		return intent, r.HolderEnded(ctx, j.Place, err)
	case ctx.Err() != nil:
		return intent, fmt.Errorf("cannot start the %s: %w", j.Role.Name, ctx.Err())
	}
	if err := r.prepareNetwork(ctx, j, time.Now().Add(r.Timeout)); err != nil {
		return intent, err
	}
	// The engine may carry out a request whose client has gone, so complete the start. A
	// cancelled ctx ends the call right afterwards.
	intent, err = r.begin(context.WithoutCancel(ctx), j, rec)
	return intent, r.HolderEnded(ctx, j.Place, err)
}

// lostIntent ends a call that was started and whose intent file is missing. It is stopped and
// counted as lost. The loop makes the call again as the next attempt.
func (r *Runner) lostIntent(j Job, rec roles.Record) (roles.Intent, error) {
	intent := r.intent(j)
	intent.Session = "" // the new one is not the call's
	err := rec.Stop(roles.Stopped{Class: outcome.Lost})
	if err == nil {
		err = rec.SaveIntent(intent)
	}
	return intent, err
}

// intent returns the parameters of a call that begins now.
func (r *Runner) intent(j Job) roles.Intent {
	return roles.Intent{
		Key:       j.Call.ID,
		Container: r.container(j),
		Image:     j.Image,
		Agent:     j.Agent.Name,
		Model:     j.Call.Model,
		Effort:    j.Call.Effort,
		Session:   j.Call.Session,
		Begun:     time.Now().UTC(),
		Reports:   helper.ReportsIn(j.Role.Workspace(r.Project), j.Role.Reports),
	}
}

// begin creates the call's container and starts it. It marks the call as started before the
// start, because a container that is gone later may have spent tokens.
func (r *Runner) begin(ctx context.Context, j Job, rec roles.Record) (roles.Intent, error) {
	if err := r.Quota.CheckRoom(); err != nil {
		return roles.Intent{}, err
	}
	intent, container, err := r.prepare(ctx, j, rec)
	if err != nil {
		return intent, err
	}
	var measuring sync.WaitGroup
	var measureErr error
	measuring.Go(func() { measureErr = r.measureFirst(ctx, j, rec) })
	defer measuring.Wait()
	proof := r.launcher(j, rec, container)
	created := func() error {
		failpoint.Here("call.created")
		measuring.Wait()
		return measureErr
	}
	ready := func() error {
		r.emit(j, state.Event{Kind: state.CallStart})
		err := rec.MarkStarted()
		failpoint.Here("call.starting")
		return err
	}
	return intent, r.handleProof(ctx, j, rec, proof.Launch(ctx, created, ready))
}

// launcher returns the Launcher of a call's container.
func (r *Runner) launcher(j Job, rec roles.Record, container sandbox.ContainerConfig) boundary.Launcher {
	return boundary.Launcher{
		Containers: r.Containers,
		Project:    r.Project,
		Config:     container,
		Dir:        rec.Dir,
		Rule:       boundary.RoleRule(j.Role, r.Project, r.ID, rec.Dir, r.Port != 0),
		Secrets:    r.Safe,
	}
}

// handleProof handles an error of the start or the proof of a call's container. If the container
// never ran, handleProof clears the started mark and removes a container with an unproven
// boundary. A container that ran may have spent tokens: handleProof stops it, and follow
// determines its outcome. If the engine does not respond, the next run checks again.
func (r *Runner) handleProof(ctx context.Context, j Job, rec roles.Record, err error) error {
	if err == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	st, serr := r.Engine.Status(ctx, r.container(j))
	switch unproven := errors.Is(err, sandbox.ErrUnproven); {
	case !unproven && serr == nil && st.State == sandbox.Created:
		return errors.Join(err, rec.Unmark())
	case !unproven:
		return err
	case errors.Is(serr, sandbox.ErrNotFound) && rec.Started():
		return nil
	case serr != nil && !errors.Is(serr, sandbox.ErrNotFound):
		return serr // the next run checks again
	case serr != nil || st.State == sandbox.Created:
		return errors.Join(fmt.Errorf("call %s: %w", j.Call.ID, err), r.Engine.Remove(ctx, r.container(j)), rec.Unmark())
	}
	reason := strings.TrimPrefix(err.Error(), sandbox.ErrUnproven.Error()+": ")
	why := roles.Stopped{Class: outcome.Unproven, Reason: reason}
	if herr := r.HolderEnded(ctx, j.Place, err); errors.Is(herr, sandbox.ErrKilled) {
		why = roles.Stopped{Class: outcome.EngineGone, Reason: herr.Error()}
	}
	if err := rec.Stop(why); err != nil {
		return err
	}
	return r.Engine.Stop(ctx, r.container(j), 0)
}

// prepare writes the call's files and its intent, opens its gateway, and describes its container.
func (r *Runner) prepare(ctx context.Context, j Job, rec roles.Record) (intent roles.Intent, container sandbox.ContainerConfig, err error) {
	if err := rec.Unmark(); err != nil {
		return intent, container, err
	}
	if err := r.Engine.Remove(ctx, r.container(j)); err != nil {
		return intent, container, err
	}
	cmd, err := j.Agent.Command(j.Call)
	if err != nil {
		return intent, container, err
	}
	deadline := time.Now().Add(r.Timeout + time.Minute)
	if err := r.prepareFiles(j, rec, cmd, deadline); err != nil {
		return intent, container, fmt.Errorf("cannot prepare call %s: %w", j.Call.ID, err)
	}
	if err := r.pointLast(j, rec); err != nil {
		return intent, container, fmt.Errorf("cannot link to the log of call %s: %w", j.Call.ID, err)
	}
	intent = r.intent(j)
	if err := rec.SaveIntent(intent); err != nil {
		return intent, container, err
	}
	failpoint.Here("call.intent")
	if j.Gate != nil {
		env, err := j.Gate.Open(ctx, j.Call.ID, j.Call.Model, deadline)
		if err != nil {
			return intent, container, fmt.Errorf("cannot start the %s's gateway: %w", j.Role.Name, err)
		}
		j.Env = append(j.Env[:len(j.Env):len(j.Env)], env...)
	}
	return intent, r.containerFor(j, rec, cmd, deadline), nil
}

func (r *Runner) emit(j Job, e state.Event) {
	e.Time, e.Phase, e.Iteration, e.Step = time.Now().UTC(), j.Call.Phase, j.Call.Iteration, j.Call.Step
	e.Round = j.Round
	e.Role, e.Call, e.Agent, e.Model = j.Role.Name, j.Call.ID, j.Agent.Name, cmp.Or(e.Model, j.Call.Model)
	r.Out.Emit(e)
}

// NewSession returns a random UUID (RFC 9562, version 4), the form of agents' session ids.
func NewSession() string {
	b := make([]byte, 16)
	rand.Read(b) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
