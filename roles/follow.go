package roles

import (
	"context"
	"errors"
	"os"
	"time"

	"abl/internal/helper"
	"abl/internal/outcome"
	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/internal/testing/failpoint"
	"abl/roles/agent"
)

// poll is how often a running call's output is read.
const poll = 100 * time.Millisecond

// late is how long tidying up may take after the work was cancelled.
const late = 30 * time.Second

// tidying is ctx for what is seen through after it was cancelled, though not for long.
func tidying(ctx context.Context) (context.Context, context.CancelFunc) {
	tidy, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		end := time.AfterFunc(late, cancel)
		context.AfterFunc(tidy, func() { end.Stop() })
	})
	return tidy, func() { stop(); cancel() }
}

// follow reads the call's output until its box ends, or ends the box when the
// person or a limit says so, and fills in how it ended.
func (r *Runner) follow(ctx context.Context, j Job, rec Record, intent Intent, o *Outcome) error {
	out, err := OpenOutput(rec.Stdout())
	if err != nil {
		return err
	}
	defer out.Close()
	errs, err := OpenOutput(rec.Stderr())
	if err != nil {
		return err
	}
	defer errs.Close()
	reader := j.Agent.NewReader(j.Call)
	t := &tail{in: out, most: r.Output, to: Messages(reader, r.Safe, func(m agent.Message) {
		if did := m.Line(); did != "" {
			r.emit(j, state.Event{Kind: state.Action, Text: did})
		}
	})}
	exit, why, err := r.watch(ctx, j, rec, t, func() int64 { return max(t.read, size(out)) + size(errs) }, intent)
	if err != nil {
		return err
	}
	if before, err := rec.stopped(); err != nil {
		return err
	} else if before.Class != "" {
		why = before // by this abl or by one before it
	}
	if err := t.finish(); err != nil {
		return err
	}
	t.to(nil, false)
	o.Output, o.Ended = t.read, time.Now().UTC()
	o.Duration = o.Ended.Sub(o.Started).Milliseconds()
	o.Exit = exit.Code
	res := reader.Result(exit.Code)
	o.Usage, o.Requests = res.Usage, res.Requests
	if res.Session != "" {
		o.Session = res.Session
	}
	var end helper.RunEnd
	if why.Class == "" && (!res.Finished || j.Limit > 0) {
		var err error // of an engine that cannot be asked: then there are no last words
		if end, err = r.lastWords(context.WithoutCancel(ctx), r.box(j)); errors.Is(err, sandbox.ErrNotFound) && !res.Finished {
			why.Class = outcome.Lost
		}
	}
	passed, err := r.settle(ctx, j, o)
	if err != nil {
		return err
	}
	ending := ending{exit: exit, stopped: why, last: end, apart: j.Place == "", said: res, passed: passed, role: j.Role.Name, model: j.Call.Model, idle: r.Idle, timeout: r.Timeout, output: r.Output}
	ending.keyVar = j.Agent.Provider.KeyVar
	if why.Class == "" {
		ending.fallen = r.standing(context.WithoutCancel(ctx), j, res.Finished)
	}
	o.Ports = end.Ports
	o.Class, o.Reason, o.Evidence = ending.classify()
	failpoint.Here("call.ended")
	return nil
}

// watch waits for the box's end, and says why abl ended it, when it did. That it
// printed too much counts even if it was quicker than abl.
func (r *Runner) watch(ctx context.Context, j Job, rec Record, t *tail, printed func() int64, intent Intent) (sandbox.Exit, stopped, error) {
	type end struct {
		exit sandbox.Exit
		err  error
	}
	ended := make(chan end, 1)
	tidy, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	go func() {
		exit, err := r.Engine.Wait(tidy, r.box(j))
		ended <- end{exit, err}
	}()
	tick, wall := time.NewTicker(poll), time.NewTimer(max(time.Until(intent.Begun.Add(r.Timeout)), 0))
	defer tick.Stop()
	defer wall.Stop()
	before := func() (base, bool, error) { return Read[base](rec, treeFile) }
	outgrown, quiet := r.Quota.outgrown(tidy, j.Role.Workspace(r.Project), before, intent.Begun), r.quietness(j, rec, intent)
	var killed stopped
	done := ctx.Done()
	for {
		var why stopped
		select {
		case e := <-ended:
			if errors.Is(e.err, sandbox.ErrNotFound) {
				return sandbox.Exit{Code: -1}, stopped{Class: outcome.Lost}, nil // nobody knows its code, so nothing it said can make it done
			}
			if killed.Class == "" && r.flooded(printed()) {
				killed.Class = outcome.Flood
				return e.exit, killed, errors.Join(e.err, rec.stop(killed))
			}
			return e.exit, killed, e.err
		case <-done:
			why.Class, done = outcome.Interrupted, nil
		case <-wall.C:
			why.Class = outcome.Timeout
		case text := <-outgrown:
			why = stopped{outcome.Disk, text}
		case <-tick.C:
			if _, err := t.pump(); err != nil {
				return sandbox.Exit{}, killed, err
			}
			switch now := printed(); {
			case r.flooded(now):
				why.Class = outcome.Flood
			case killed.Class == "" && r.Idle > 0 && quiet.tooLong(tidy, now):
				why.Class = outcome.Idle
			}
		}
		if why.Class != "" && killed.Class == "" && r.running(tidy, j) {
			killed = why
			if err := rec.stop(why); err != nil {
				return sandbox.Exit{}, killed, err
			}
			failpoint.Here("call.stopping")
			if err := r.Engine.Stop(tidy, r.box(j), agent.StopGrace); err != nil && !errors.Is(err, sandbox.ErrNotFound) {
				return sandbox.Exit{}, killed, err
			}
		}
	}
}

// flooded says that a call printed more than it may.
func (r *Runner) flooded(printed int64) bool { return r.Output > 0 && printed > r.Output }

// running is false once the box has ended: a call that ended while nobody
// followed it is neither late nor stopped.
func (r *Runner) running(ctx context.Context, j Job) bool {
	st, err := r.Engine.Status(ctx, r.box(j))
	if err != nil {
		return !errors.Is(err, sandbox.ErrNotFound)
	}
	return st.State == sandbox.Running
}

// quiet measures how long a call has done nothing: printed nothing, asked nothing
// of its provider, and used next to no CPU. What it costs to ask for the last two
// is paid only once nothing has been printed for a while.
type quiet struct {
	idle    time.Duration // how long it may be
	printed int64
	last    time.Time // when it last did something
	load    func(context.Context) []sandbox.Load
	was     []sandbox.Load // when it was measured last, nil for not yet
	at      time.Time
	looks   int // since it last did something
}

const (
	busyShare = 20      // a twentieth of one CPU is work
	busyBytes = 2 << 10 // through the gate since the last look: more than connections need to stay open
)

// enoughLooks keeps an abl that was itself stopped, or that slept with its machine,
// from taking its own absence for the call's.
const enoughLooks = 3

// tooLong takes what has been printed until now, in bytes, and says whether nothing
// has been done for as long as it may.
func (q *quiet) tooLong(ctx context.Context, printed int64) bool {
	now := time.Now()
	if printed != q.printed {
		q.printed, q.last, q.was, q.looks = printed, now, nil, 0
	}
	if now.Sub(q.last) >= q.idle/4 && now.Sub(q.at) >= q.idle/8 {
		q.look(ctx, now)
	}
	return now.Sub(q.last) > q.idle && q.looks >= enoughLooks
}

// look measures, and compares with the last time. What cannot be measured counts
// for nothing either way.
func (q *quiet) look(ctx context.Context, now time.Time) {
	is := q.load(ctx)
	q.looks++
	if q.was != nil && worked(q.was, is, now.Sub(q.at)) {
		q.last, q.looks = now, 0
	}
	q.was, q.at = is, now
}

// worked compares two measurements of the same boxes, the call's first. An engine without the
// rights to measure, as a rootless one may be, says 0: that is no sign of idleness.
func worked(was, is []sandbox.Load, between time.Duration) bool {
	if len(is) > 0 && is[0].CPU == 0 {
		return true
	}
	for i := range min(len(was), len(is)) {
		if is[i].CPU-was[i].CPU >= max(between/busyShare, 1) || is[i].Net-was[i].Net >= busyBytes {
			return true
		}
	}
	return false
}

// quietness begins to measure a call.
func (r *Runner) quietness(j Job, rec Record, intent Intent) *quiet {
	return &quiet{idle: r.Idle, last: lastWord(rec, intent), load: func(ctx context.Context) []sandbox.Load {
		own, err := r.Engine.Load(ctx, r.box(j))
		if err != nil {
			return nil
		}
		if j.Gate == nil {
			return []sandbox.Load{own}
		}
		gate, err := r.Engine.Load(ctx, GateName(r.ID, j.Call.ID))
		if err != nil {
			return []sandbox.Load{own}
		}
		return []sandbox.Load{own, {Net: gate.Net}}
	}}
}

// lastWord is when a call was begun or last printed something, as far as an abl
// that attaches to it can tell.
func lastWord(rec Record, intent Intent) time.Time {
	last := intent.Begun
	for _, path := range []string{rec.Stdout(), rec.Stderr()} {
		if fi, err := os.Lstat(path); err == nil && fi.ModTime().After(last) {
			last = fi.ModTime()
		}
	}
	// By this process's own clock, which no change of the time disturbs; a file's
	// time is the role's to set, and may lie ahead.
	return time.Now().Add(-max(time.Since(last), 0))
}
