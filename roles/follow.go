package roles

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"abl/internal/failpoint"
	"abl/orchestrator/dirs"
	"abl/orchestrator/event"
	"abl/orchestrator/sandbox"
	"abl/roles/agent"

	"golang.org/x/sys/unix"
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

// lastWords reads what abl-run said of the end in the engine's log.
func (r *Runner) lastWords(ctx context.Context, j Job) (end dirs.RunEnd) {
	data, err := r.Engine.Logs(ctx, r.name(j), 4<<10)
	if err != nil {
		return end
	}
	lines := splitLines(data)
	for i := len(lines) - 1; i >= 0; i-- {
		if json.Unmarshal(lines[i], &end) == nil {
			return end
		}
	}
	return dirs.RunEnd{}
}

// classify decides how a call ended: by the agent's own proper end, unless its
// output was cut or nobody knows its exit code; then by what abl did, then by
// the engine's flag, then by signals and codes.
func classify(exit sandbox.Exit, killed Class, end dirs.RunEnd, res agent.Result, r *Runner) (Class, string) {
	switch {
	case res.Finished && killed != Flood && killed != Lost:
		return Done, ""
	case killed == Timeout, end.Deadline:
		return Timeout, fmt.Sprintf("stopped after %s (loop.call_timeout)", r.Timeout)
	case killed == Flood:
		return Flood, fmt.Sprintf("stopped: it printed more than %d bytes (limits.output)", r.Output)
	case killed == Interrupted:
		return Interrupted, "stopped on request"
	case killed == Lost:
		return Lost, "its container was removed by somebody else"
	case res.Trouble == agent.Away:
		return Away, res.Reason
	case res.Trouble == agent.Login:
		return Refused, res.Reason
	case exit.OOMKilled:
		return OutOfMemory, "out of memory (limits.memory)"
	case end.Error != "":
		return Failed, "could not be started: " + end.Error
	case end.Signal != "":
		return Crashed, "ended by signal " + end.Signal
	case res.Reason != "":
		return Failed, res.Reason
	}
	return Failed, fmt.Sprintf("ended with exit code %d and no result", exit.Code)
}

// openOutput opens a file that the role writes: a regular one, never through a link, never blocking.
func openOutput(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot read the output of a call: %w", err)
	}
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		f.Close()
		return nil, fmt.Errorf("cannot read the output of a call: %q is not a regular file", path)
	}
	return f, nil
}

func size(f *os.File) int64 {
	fi, err := f.Stat()
	if err != nil {
		return 0
	}
	return fi.Size()
}

// tail hands out the lines of a growing file, each at most agent.MaxLine long.
type tail struct {
	in   io.Reader
	to   func(line []byte, cut bool)
	read int64
	line []byte
	cut  bool
	buf  [64 << 10]byte
}

// pump reads what has been written since the last time.
func (t *tail) pump() error {
	for {
		n, err := t.in.Read(t.buf[:])
		t.read += int64(n)
		t.feed(t.buf[:n])
		if err == io.EOF || err == nil && n == 0 {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot read the output of a call: %w", err)
		}
	}
}

// finish reads the rest; a last line needs no newline.
func (t *tail) finish() error {
	if err := t.pump(); err != nil {
		return err
	}
	if len(t.line) > 0 {
		t.flush()
	}
	return nil
}

func (t *tail) feed(data []byte) {
	for _, part := range splitAfterLines(data) {
		text, whole := trimNewline(part)
		if room := agent.MaxLine - len(t.line); len(text) > room {
			text, t.cut = text[:room], true
		}
		t.line = append(t.line, text...)
		if whole {
			t.flush()
		}
	}
}

func (t *tail) flush() {
	t.to(t.line, t.cut)
	t.line, t.cut = t.line[:0], false
	if cap(t.line) > 1<<20 {
		t.line = nil
	}
}
