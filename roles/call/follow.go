package call

import (
	"cmp"
	"context"
	"errors"
	"os"
	"time"

	"abl/internal/helper"
	"abl/internal/outcome"
	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/internal/testing/failpoint"
	"abl/roles"
	"abl/roles/agent"
)

// follow reads the call's output until its container ends, or ends the container when ctx ends or a
// limit is reached. It sets in o how the call ended.
func (r *Runner) follow(ctx context.Context, j Job, rec roles.Record, intent roles.Intent, o *roles.Outcome) error {
	out, err := roles.EnsureOutput(rec.Stdout())
	if err != nil {
		return err
	}
	defer out.Close()
	errs, err := roles.EnsureOutput(rec.Stderr())
	if err != nil {
		return err
	}
	defer errs.Close()
	reader := j.Agent.NewReader(j.Call)
	t := &roles.Tail{In: out, Most: r.Output, To: roles.Messages(reader, r.Safe, func(m agent.Message) {
		if did := m.Line(); did != "" {
			r.emit(j, state.Event{Kind: state.Action, Text: did})
		}
	})}
	exit, err := r.watch(ctx, j, rec, t, func() int64 { return max(t.Read, size(out)) + size(errs) }, intent)
	if err != nil {
		return err
	}
	why, err := rec.Stopped() // by this abl or an earlier one
	if err == nil {
		err = t.Finish()
	}
	if err != nil {
		return err
	}
	t.To(nil, false)
	o.Output, o.Ended, o.Exit = t.Read, time.Now().UTC(), exit.Code
	o.Duration = o.Ended.Sub(o.Started).Milliseconds()
	res := reader.Result(exit.Code)
	o.Usage, o.Requests, o.Session = res.Usage, res.Requests, cmp.Or(res.Session, o.Session)
	return r.conclude(ctx, j, exit, why, res, o)
}

// conclude closes the gateway of a call that has ended, and fills in how it ended.
func (r *Runner) conclude(ctx context.Context, j Job, exit sandbox.Exit, why roles.Stopped, said agent.Result,
	o *roles.Outcome) error {
	uncancelled := context.WithoutCancel(ctx)
	var end helper.RunEnd
	switch {
	case why.Class == "" && exit.Code == noCode:
		why.Class = outcome.Lost
	case why.Class == "" && (!said.Finished || j.Limit > 0):
		var err error // if the engine does not respond, there is no report of the end
		if end, _, err = r.RunEnd(uncancelled, r.container(j)); errors.Is(err, sandbox.ErrNotFound) && !said.Finished {
			why.Class = outcome.Lost
		}
	}
	passed, err := r.closeGate(ctx, j, o)
	if err != nil {
		return err
	}
	ending := ending{
		exit:    exit,
		stopped: why,
		last:    end,
		said:    said,
		passed:  passed,
		job:     j,
		timeout: r.Timeout,
		idle:    r.Idle,
		output:  r.Output,
	}
	if why.Class == "" {
		if ending.lost, err = r.findLoss(uncancelled, j, said.Finished); err != nil {
			return err
		}
	}
	o.Ports = end.Ports
	o.Class, o.Reason, o.Evidence = ending.classify()
	failpoint.Here("call.ended")
	return nil
}

// noCode is the exit code of a container that is gone. Its call cannot count as done.
const noCode = -1

// watch waits for the container's end. It ends the container when ctx ends or a limit is reached,
// and records the reason. Too much output counts even if the container ended before abl noticed.
func (r *Runner) watch(ctx context.Context, j Job, rec roles.Record, t *roles.Tail, printed func() int64,
	intent roles.Intent) (sandbox.Exit, error) {
	type end struct {
		exit sandbox.Exit
		err  error
	}
	ended := make(chan end, 1)
	tidy, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	go func() {
		exit, err := r.Engine.Wait(tidy, r.container(j))
		ended <- end{exit, err}
	}()
	outgrown := r.outgrown(tidy, j, rec, intent.Begun)
	tick, wall := time.NewTicker(roles.PollInterval), time.NewTimer(max(time.Until(intent.Begun.Add(r.Timeout)), 0))
	defer tick.Stop()
	defer wall.Stop()
	idle := newIdleTimer(r.Idle, func() *sandbox.Load { return r.load(tidy, j) })
	stopping, err := r.stopNoted(tidy, j, rec)
	if err != nil {
		return sandbox.Exit{}, err
	}
	done := ctx.Done()
	var used *roles.Used
	for {
		var why roles.Stopped
		select {
		case e := <-ended:
			return r.exited(rec, e.exit, e.err, printed)
		case <-done:
			why.Class, done = outcome.Interrupted, nil
		case <-wall.C:
			why.Class = outcome.Timeout
		case text := <-outgrown:
			why = roles.Stopped{Class: outcome.Disk, Reason: text}
		case <-tick.C:
			if _, err := t.Pump(); err != nil {
				return sandbox.Exit{}, err
			}
			used = r.emitUsed(j, used, j.Agent.Own && t.Read == 0)
			switch now := printed(); {
			case r.flooded(now):
				why.Class = outcome.Flood
			case idle.expired(now + signs(j)):
				why.Class = outcome.Idle
			}
		}
		if why.Class == "" || stopping || !r.running(tidy, j) {
			continue
		}
		stopping = true
		if err := r.stopFor(tidy, j, rec, why); err != nil {
			return sandbox.Exit{}, err
		}
	}
}

// stopFor records why the call is stopped, and stops it.
func (r *Runner) stopFor(ctx context.Context, j Job, rec roles.Record, why roles.Stopped) error {
	if err := rec.Stop(why); err != nil {
		return err
	}
	failpoint.Here("call.stopping")
	return r.stop(ctx, j)
}

// exited returns how a container ended. A call that printed too much counts as stopped even if it ended
// before abl saw that.
func (r *Runner) exited(rec roles.Record, exit sandbox.Exit, err error, printed func() int64) (sandbox.Exit, error) {
	switch {
	case errors.Is(err, sandbox.ErrNotFound):
		return sandbox.Exit{Code: noCode}, nil
	case err == nil && r.flooded(printed()):
		return exit, rec.Stop(roles.Stopped{Class: outcome.Flood})
	}
	return exit, err
}

// emitUsed emits what the call has used so far if it is more than was, and returns it. For an agent that
// has printed nothing, which is silent, it also emits the new requests to the model.
func (r *Runner) emitUsed(j Job, was *roles.Used, silent bool) *roles.Used {
	if j.Gate == nil {
		return nil
	}
	is, shown := j.Gate.Used(), 0
	if is == nil {
		return was
	}
	if was != nil {
		shown = len(was.Requests)
	}
	if silent {
		for _, text := range is.Requests[shown:] {
			r.emit(j, state.Event{Kind: state.Action, Text: text})
		}
	}
	if was != nil && is.Tokens == was.Tokens && is.AtLeast == was.AtLeast {
		return is
	}
	e := state.Event{Kind: state.Running, Tokens: &is.Tokens, AtLeast: is.AtLeast}
	if is.USD != nil {
		e.CostUSD = is.USD.String()
	}
	r.emit(j, e)
	return is
}

// stopNoted stops a call that an earlier abl had decided to stop when it was killed. It returns
// whether there was such a decision.
func (r *Runner) stopNoted(ctx context.Context, j Job, rec roles.Record) (stopping bool, err error) {
	why, err := rec.Stopped()
	if err != nil || why.Class == "" {
		return false, err
	}
	return true, r.stop(ctx, j)
}

// stop stops the call's container if it exists.
func (r *Runner) stop(ctx context.Context, j Job) error {
	if err := r.Engine.Stop(ctx, r.container(j), agent.StopGrace); !errors.Is(err, sandbox.ErrNotFound) {
		return err
	}
	return nil
}

// flooded reports whether a call printed more than its limit.
func (r *Runner) flooded(printed int64) bool { return r.Output > 0 && printed > r.Output }

// running returns false if the container has ended: a limit that passes afterwards does not count.
func (r *Runner) running(ctx context.Context, j Job) bool {
	st, err := r.Engine.Status(ctx, r.container(j))
	if err != nil {
		return !errors.Is(err, sandbox.ErrNotFound)
	}
	return st.State == sandbox.Running
}

// signs returns the number of signs of life of the call's provider so far. Pings of a model that
// thinks are signs too.
func signs(j Job) int64 {
	if j.Gate != nil {
		if used := j.Gate.Used(); used != nil {
			return used.Signs
		}
	}
	return 0
}

// idleTimer measures how long a call has been idle: without output, signs of life of its provider,
// traffic, and CPU time.
type idleTimer struct {
	limit time.Duration // how long it may be idle, 0 for any time
	load  func() *sandbox.Load
	last  time.Time // of the last activity
	at    time.Time // of the last check, with its results:
	seen  int64
	was   *sandbox.Load

	checks int // since the last activity
}

func newIdleTimer(limit time.Duration, load func() *sandbox.Load) *idleTimer {
	now := time.Now()
	return &idleTimer{
		limit: limit,
		load:  load,
		last:  now,
		at:    now,
	}
}

const (
	busyShare = 20 // a twentieth of one CPU counts as activity
	// Bytes of the container's traffic since the last check: more than keeping connections open needs.
	busyBytes = 2 << 10
)

// minChecks is the number of checks without activity before the timer expires, so that time during
// which abl or the machine was suspended does not count.
const minChecks = 3

// expired reports whether the call has been idle for longer than the limit. seen is the number of
// bytes of output and of signs so far. Values that cannot be measured are ignored.
func (q *idleTimer) expired(seen int64) bool {
	now := time.Now()
	if q.limit == 0 || now.Sub(q.at) < q.limit/8 {
		return false
	}
	is := q.load()
	if seen != q.seen || worked(q.was, is, now.Sub(q.at)) {
		q.last, q.checks = now, 0
	}
	q.at, q.seen, q.was = now, seen, is
	q.checks++
	return now.Sub(q.last) > q.limit && q.checks >= minChecks
}

// worked compares two measurements of a container, nil for an unknown one. An engine without the
// rights to measure, such as some rootless ones, returns 0, which does not mean idle.
func worked(was, is *sandbox.Load, between time.Duration) bool {
	switch {
	case is == nil:
		return false
	case is.CPU == 0:
		return true
	}
	return was != nil && (is.CPU-was.CPU >= max(between/busyShare, 1) || is.Net-was.Net >= busyBytes)
}

// load measures the CPU time and the traffic of a call's container. It returns nil if it cannot.
func (r *Runner) load(ctx context.Context, j Job) *sandbox.Load {
	own, err := r.Engine.Load(ctx, r.container(j))
	if err != nil {
		return nil
	}
	return &own
}

func size(f *os.File) int64 {
	fi, err := f.Stat()
	if err != nil {
		return 0
	}
	return fi.Size()
}
