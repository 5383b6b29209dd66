package roles

import (
	"context"
	"errors"
	"os"
	"time"

	"abl/internal/failpoint"
	"abl/orchestrator/dirs"
	"abl/orchestrator/event"
	"abl/orchestrator/sandbox"
	"abl/roles/agent"
)

// poll is how often a running call's output is read.
const poll = 100 * time.Millisecond

// late is how long tidying up may take after the work was cancelled.
const late = 30 * time.Second

// follow reads the call's output until its box ends, or ends the box when the
// person or a limit says so, and fills in how it ended.
func (r *Runner) follow(ctx context.Context, j Job, rec Record, intent Intent, o *Outcome) error {
	out, err := openOutput(rec.Stdout())
	if err != nil {
		return err
	}
	defer out.Close()
	errs, err := openOutput(rec.Stderr())
	if err != nil {
		return err
	}
	defer errs.Close()
	reader := j.Agent.NewReader(j.Call)
	t := &tail{in: out, to: func(line []byte, cut bool) {
		if did := reader.Line(line, cut); did != "" {
			r.emit(j, event.Event{Kind: event.Action, Text: did})
		}
	}}
	exit, killed, err := r.watch(ctx, j, rec, t, errs, time.Until(intent.Begun.Add(r.Timeout)))
	if err != nil {
		return err
	}
	if why, err := rec.stopped(); err != nil {
		return err
	} else if why != "" {
		killed = why // by this abl or by one before it
	}
	if err := t.finish(); err != nil {
		return err
	}
	o.Output = t.read
	o.Ended = time.Now().UTC()
	o.Duration = o.Ended.Sub(o.Started).Milliseconds()
	o.Exit = exit.Code
	res := reader.Result(exit.Code)
	o.Usage, o.Requests = res.Usage, res.Requests
	if res.Session != "" {
		o.Session = res.Session
	}
	var end dirs.RunEnd
	if killed == "" && !res.Finished {
		end = r.lastWords(context.WithoutCancel(ctx), j)
	}
	o.Class, o.Reason = classify(exit, killed, end, res, r)
	failpoint.Here("call.ended")
	return nil
}

// watch waits for the box's end. killed says why abl ended it, "" when it did not.
func (r *Runner) watch(ctx context.Context, j Job, rec Record, t *tail, errs *os.File, left time.Duration) (sandbox.Exit, Class, error) {
	type end struct {
		exit sandbox.Exit
		err  error
	}
	ended := make(chan end, 1)
	tidy, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	go func() {
		exit, err := r.Engine.Wait(tidy, r.name(j))
		ended <- end{exit, err}
	}()
	tick, wall := time.NewTicker(poll), time.NewTimer(max(left, 0))
	defer tick.Stop()
	defer wall.Stop()
	var killed Class
	done := ctx.Done()
	for {
		var why Class
		select {
		case e := <-ended:
			if errors.Is(e.err, sandbox.ErrNotFound) {
				return sandbox.Exit{Code: -1}, Lost, nil // nobody knows its code, so nothing it said can make it done
			}
			return e.exit, killed, e.err
		case <-done:
			why, done = Interrupted, nil
		case <-wall.C:
			why = Timeout
		case <-tick.C:
			if err := t.pump(); err != nil {
				return sandbox.Exit{}, "", err
			}
			if r.Output > 0 && t.read+size(errs) > r.Output {
				why = Flood
			}
		}
		if why != "" && killed == "" && r.running(tidy, j) {
			killed = why
			if err := rec.Stop(why); err != nil {
				return sandbox.Exit{}, killed, err
			}
			failpoint.Here("call.stopping")
			if err := r.Engine.Stop(tidy, r.name(j), agent.StopGrace); err != nil && !errors.Is(err, sandbox.ErrNotFound) {
				return sandbox.Exit{}, killed, err
			}
		}
	}
}

// running is false once the box has ended: a call that ended while nobody
// followed it is neither late nor stopped.
func (r *Runner) running(ctx context.Context, j Job) bool {
	st, err := r.Engine.Status(ctx, r.name(j))
	if err != nil {
		return !errors.Is(err, sandbox.ErrNotFound)
	}
	return st.State == sandbox.Running
}
