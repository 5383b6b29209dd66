package roles

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"abl/internal/helper"
	"abl/internal/hostfs"
	"abl/internal/outcome"
	"abl/internal/proc"
	"abl/internal/redact"
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
	out, err := openOrMake(rec.Stdout())
	if err != nil {
		return err
	}
	defer out.Close()
	errs, err := openOrMake(rec.Stderr())
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
	exit, err := r.watch(ctx, j, rec, t, func() int64 { return max(t.read, size(out)) + size(errs) }, intent)
	if err != nil {
		return err
	}
	why, err := rec.stopped() // by this abl or by one before it
	if err == nil {
		err = t.finish()
	}
	if err != nil {
		return err
	}
	t.to(nil, false)
	o.Output, o.Ended, o.Exit = t.read, time.Now().UTC(), exit.Code
	o.Duration = o.Ended.Sub(o.Started).Milliseconds()
	res := reader.Result(exit.Code)
	o.Usage, o.Requests, o.Session = res.Usage, res.Requests, cmp.Or(res.Session, o.Session)
	whole := context.WithoutCancel(ctx)
	var end helper.RunEnd
	switch {
	case why.Class == "" && exit.Code == noCode:
		why.Class = outcome.Lost
	case why.Class == "" && (!res.Finished || j.Limit > 0):
		var err error // of an engine that cannot be asked: then there are no last words
		if end, _, err = r.runEnd(whole, r.box(j)); errors.Is(err, sandbox.ErrNotFound) && !res.Finished {
			why.Class = outcome.Lost
		}
	}
	passed, err := r.closeGate(ctx, j, o)
	if err != nil {
		return err
	}
	ending := ending{exit: exit, stopped: why, last: end, said: res, passed: passed, job: j, timeout: r.Timeout, idle: r.Idle, output: r.Output}
	if why.Class == "" {
		if ending.lost, err = r.findLoss(whole, j, res.Finished); err != nil {
			return err
		}
	}
	o.Ports = end.Ports
	o.Class, o.Reason, o.Evidence = ending.classify()
	failpoint.Here("call.ended")
	return nil
}

// noCode stands for the exit code of a box that is gone: nothing that it said can make it done.
const noCode = -1

// watch waits for the box's end, and brings it about when the person or a limit says so,
// which the record tells then. That it printed too much counts even if it was quicker than abl.
func (r *Runner) watch(ctx context.Context, j Job, rec Record, t *tail, printed func() int64, intent Intent) (sandbox.Exit, error) {
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
	outgrown := r.outgrown(tidy, j, rec, intent.Begun)
	tick, wall := time.NewTicker(poll), time.NewTimer(max(time.Until(intent.Begun.Add(r.Timeout)), 0))
	defer tick.Stop()
	defer wall.Stop()
	quiet := &quiet{idle: r.Idle, last: time.Now(), at: time.Now(), load: func() []sandbox.Load { return r.load(tidy, j) }}
	stopping, err := r.stopNoted(tidy, j, rec)
	if err != nil {
		return sandbox.Exit{}, err
	}
	done := ctx.Done()
	var used *Used
	for {
		var why stopped
		select {
		case e := <-ended:
			switch {
			case errors.Is(e.err, sandbox.ErrNotFound):
				return sandbox.Exit{Code: noCode}, nil
			case e.err == nil && r.flooded(printed()):
				return e.exit, rec.stop(stopped{Class: outcome.Flood})
			}
			return e.exit, e.err
		case <-done:
			why.Class, done = outcome.Interrupted, nil
		case <-wall.C:
			why.Class = outcome.Timeout
		case text := <-outgrown:
			why = stopped{outcome.Disk, text}
		case <-tick.C:
			if _, err := t.pump(); err != nil {
				return sandbox.Exit{}, err
			}
			used = r.emitUsed(j, used)
			switch now := printed(); {
			case r.flooded(now):
				why.Class = outcome.Flood
			case quiet.tooLong(now):
				why.Class = outcome.Idle
			}
		}
		if why.Class == "" || stopping || !r.running(tidy, j) {
			continue
		}
		stopping = true
		if err := rec.stop(why); err != nil {
			return sandbox.Exit{}, err
		}
		failpoint.Here("call.stopping")
		if err := r.stop(tidy, j); err != nil {
			return sandbox.Exit{}, err
		}
	}
}

// emitUsed emits what the call has used so far if it is more than was, and returns it.
func (r *Runner) emitUsed(j Job, was *Used) *Used {
	if j.Gate == nil {
		return nil
	}
	is := j.Gate.Used()
	if is == nil || was != nil && is.Tokens == was.Tokens && is.AtLeast == was.AtLeast {
		return was
	}
	e := state.Event{Kind: state.Running, Tokens: &is.Tokens, AtLeast: is.AtLeast}
	if is.USD != nil {
		e.CostUSD = is.USD.String()
	}
	r.emit(j, e)
	return is
}

// stopNoted stops a call that an earlier abl was about to stop when it was killed, and reports
// whether there was a reason to.
func (r *Runner) stopNoted(ctx context.Context, j Job, rec Record) (stopping bool, err error) {
	why, err := rec.stopped()
	if err != nil || why.Class == "" {
		return false, err
	}
	return true, r.stop(ctx, j)
}

// stop ends the call's box, if it is there.
func (r *Runner) stop(ctx context.Context, j Job) error {
	if err := r.Engine.Stop(ctx, r.box(j), agent.StopGrace); !errors.Is(err, sandbox.ErrNotFound) {
		return err
	}
	return nil
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
// of its provider, and used next to no CPU.
type quiet struct {
	idle    time.Duration // how long it may be, 0 for ever
	load    func() []sandbox.Load
	last    time.Time // when it last did something
	at      time.Time // when it was looked at last, and what was found then:
	printed int64
	was     []sandbox.Load
	looks   int // since it last did something
}

const (
	busyShare = 20 // a twentieth of one CPU is work
	// Through the gate since the last look: more than connections need to stay open.
	busyBytes = 2 << 10
)

// enoughLooks keeps an abl that was itself stopped, or that slept with its machine,
// from taking its own absence for the call's.
const enoughLooks = 3

// tooLong takes what has been printed until now, in bytes, and says whether nothing
// has been done for as long as it may. What cannot be measured counts for nothing either way.
func (q *quiet) tooLong(printed int64) bool {
	now := time.Now()
	if q.idle == 0 || now.Sub(q.at) < q.idle/8 {
		return false
	}
	is := q.load()
	if printed != q.printed || worked(q.was, is, now.Sub(q.at)) {
		q.last, q.looks = now, 0
	}
	q.at, q.printed, q.was = now, printed, is
	q.looks++
	return now.Sub(q.last) > q.idle && q.looks >= enoughLooks
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

// load measures a call, and what has passed its gate.
func (r *Runner) load(ctx context.Context, j Job) []sandbox.Load {
	own, err := r.Engine.Load(ctx, r.box(j))
	if err != nil {
		return nil
	}
	all := []sandbox.Load{own}
	if j.Gate != nil {
		if gate, err := r.Engine.Load(ctx, GateName(r.ID, j.Call.ID)); err == nil {
			all = append(all, sandbox.Load{Net: gate.Net})
		}
	}
	return all
}

// OpenOutput opens a file that a role writes, or has written, whatever mode the role
// has given it meanwhile.
func OpenOutput(path string) (f *os.File, err error) {
	const tries = 100 // a role may take the rights away again and again
	for range tries {
		if err = ownMode(path); err != nil {
			break
		}
		if f, err = hostfs.Open(filepath.Dir(path), filepath.Base(path)); err == nil {
			return f, nil
		}
		if !errors.Is(err, fs.ErrPermission) {
			break
		}
	}
	return nil, fmt.Errorf("cannot read the output of a call: %w", err)
}

// openOrMake opens a call's output. Output that a power cut took away counts as empty.
func openOrMake(path string) (*os.File, error) {
	f, err := OpenOutput(path)
	if !errors.Is(err, hostfs.ErrAbsent) {
		return f, err
	}
	if err := hostfs.Write(path, nil, outputMode); err != nil {
		return nil, err
	}
	return OpenOutput(path)
}

// ownMode gives a file for output the mode back with which abl made it: a role may
// have taken every right away, or let others run it as its owner. Its folder is
// abl's, so no role can exchange it.
func ownMode(path string) error {
	fi, err := os.Lstat(path)
	if err != nil || !fi.Mode().IsRegular() || fi.Mode() == outputMode {
		return nil // what is not there, or no file, is told of by others
	}
	return os.Chmod(path, outputMode)
}

const outputMode fs.FileMode = 0o644

func size(f *os.File) int64 {
	fi, err := f.Stat()
	if err != nil {
		return 0
	}
	return fi.Size()
}

// turn is how much of an output is read before anything else is looked at: an
// agent may print as fast as abl reads, and neither a limit nor a person shall
// wait for it.
const turn = 8 << 20

// Lines hands out the lines of an output, and those written to it until over, which is
// asked before each look, so that none is missed. There may be no file yet.
func Lines(ctx context.Context, path string, to func(line []byte, cut bool), over func() (bool, error)) error {
	t := &tail{to: to}
	for {
		end, err := over()
		if err != nil {
			return err
		}
		if t.in == nil {
			f, err := OpenOutput(path)
			if err == nil {
				defer f.Close()
				t.in = f
			} else if !errors.Is(err, hostfs.ErrAbsent) {
				return err
			}
		}
		for all := false; !all; {
			all, err = t.pump()
			if err = cmp.Or(context.Cause(ctx), err); err != nil {
				return err
			}
		}
		if end {
			return t.finish()
		}
		if err := proc.Pause(ctx, poll); err != nil {
			return err
		}
	}
}

// Messages takes the lines of an agent's output and hands on what they tell.
func Messages(reader agent.Reader, safe *redact.Sanitizer, each func(agent.Message)) func(line []byte, cut bool) {
	return func(line []byte, cut bool) {
		for _, m := range reader.Line(safe.Bytes(line), cut) {
			each(m)
		}
	}
}

// tail hands out the lines of a growing file, each at most agent.MaxLine long.
type tail struct {
	in   io.Reader // nil as long as there is no file
	most int64     // bytes that are read in all, 0 for whatever comes
	to   func(line []byte, cut bool)
	buf  *bufio.Reader
	read int64
	line []byte
	cut  bool
}

// pump reads what has been written since the last time, a turn of it at most,
// and says whether that was all.
func (t *tail) pump() (all bool, err error) {
	switch {
	case t.in == nil:
		return true, nil
	case t.buf == nil && t.most > 0:
		t.buf = bufio.NewReader(io.LimitReader(t.in, t.most))
	case t.buf == nil:
		t.buf = bufio.NewReader(t.in)
	}
	for until := t.read + turn; t.read < until; {
		piece, err := t.buf.ReadSlice('\n')
		t.take(piece)
		switch {
		case err == io.EOF:
			return true, nil
		case err != nil && err != bufio.ErrBufferFull:
			return true, fmt.Errorf("cannot read the output of a call: %w", err)
		}
	}
	return false, nil
}

// finish reads the rest; a last line needs no newline.
func (t *tail) finish() error {
	for all := false; !all; {
		var err error
		if all, err = t.pump(); err != nil {
			return err
		}
	}
	if len(t.line) > 0 {
		t.flush()
	}
	return nil
}

// take takes a piece of a line, with the line's end where it has one.
func (t *tail) take(piece []byte) {
	t.read += int64(len(piece))
	text, ended := bytes.CutSuffix(piece, []byte("\n"))
	if room := agent.MaxLine - len(t.line); len(text) > room {
		text, t.cut = text[:room], true
	}
	t.line = append(t.line, text...)
	if ended {
		t.flush()
	}
}

func (t *tail) flush() {
	t.to(t.line, t.cut)
	t.line, t.cut = t.line[:0], false
	if cap(t.line) > 1<<20 {
		t.line = nil
	}
}
