// Package view shows a running phase: as one JSON line an event, as plain lines
// for pipes, or as lines with a live status below them on a terminal. What
// agents wrote is made safe before any of them sees it, and nothing that
// happens to the reader reaches the run. It makes no event and decides nothing.
package view

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"abl/cmd/internal/exit"
	"abl/internal/redact"
	"abl/internal/state"
)

// The values of --progress. Auto is TTY on a terminal and Plain elsewhere.
const (
	Auto  = "auto"
	TTY   = "tty"
	Plain = "plain"
	JSON  = "json"
)

// Quiet as Options.Progress shows nothing: only the command's own error is printed.
const Quiet = "quiet"

// Options say what is shown and where.
type Options struct {
	Progress string // "" is Auto
	// JSON prints events on Stdout, and progress only where Progress asks for it.
	JSON   bool
	Stdout io.Writer         // takes the events, which the view makes safe by itself
	Stderr io.Writer         // takes the progress, likewise
	Safe   *redact.Sanitizer // knows what nobody may see
}

// View is an state.Sink that never blocks and never fails: it holds what was emitted
// and not shown yet, so that a reader who does not read holds up no run.
type View struct {
	events *jsonLines // nil where nobody reads them
	facts  *lines     // likewise
	safe   *redact.Sanitizer
	unhook func() bool
	wake   chan struct{} // has one entry when there is something to take
	end    func()
	ended  chan struct{}
	done   chan struct{}

	mu      sync.Mutex
	waiting []state.Event
}

// Open begins a view; Close ends it. When a signal ends ctx the person is told
// so at once.
func Open(ctx context.Context, o Options) *View { return open(ctx, o, time.Tick(200*time.Millisecond)) }

func open(ctx context.Context, o Options, tick <-chan time.Time) *View {
	v := &View{safe: o.Safe, wake: make(chan struct{}, 1), ended: make(chan struct{}), done: make(chan struct{})}
	v.end = sync.OnceFunc(func() { close(v.ended) })
	if o.JSON || o.Progress == JSON {
		v.events = &jsonLines{out: o.Stdout}
	}
	auto := o.Progress == "" || o.Progress == Auto
	if o.Progress == TTY || auto && !o.JSON && CanSteer(o.Stderr) {
		v.facts = newLive(o.Stderr)
	} else if o.Progress == Plain || auto && !o.JSON {
		v.facts = &lines{out: o.Stderr, now: time.Now}
		if os.Getenv("GITHUB_ACTIONS") != "" {
			v.facts.runner, _ = o.Stderr.(*redact.RunnerLog)
		}
	}
	go v.show(tick)
	v.unhook = context.AfterFunc(ctx, func() {
		if s, is := errors.AsType[exit.Signal](context.Cause(ctx)); is {
			v.put(state.Event{Kind: stopping, Time: time.Now().UTC(), Text: s.Name() + ": stopping, what was reached is being saved; once more (Ctrl-C) leaves at once"})
		}
	})
	return v
}

// stopping is a word of the view's own, for people only.
const stopping state.Kind = "stopping"

// show shows what comes until the end.
func (v *View) show(tick <-chan time.Time) {
	defer close(v.done)
	for more := true; more; {
		select {
		case <-tick:
			v.facts.redraw()
			v.events.beat(time.Now())
		case <-v.wake:
		case <-v.ended:
			more = false
		}
		v.mu.Lock()
		events := v.waiting
		v.waiting = nil
		v.mu.Unlock()
		for _, e := range events {
			v.events.show(e)
			v.facts.show(e)
		}
	}
	v.facts.close()
}

// Emit hands an event to the view, whatever its reader is doing. Its words are made
// safe for any reader, and each is put on one line.
func (v *View) Emit(e state.Event) { v.put(clean(e, v.safe)) }

func clean(e state.Event, o *redact.Sanitizer) state.Event {
	for _, s := range []*string{&e.Role, &e.Call, &e.Agent, &e.Model, &e.Class, &e.Verdict, &e.Hash, &e.Subject, &e.Text, &e.Evidence, &e.CostUSD} {
		*s = o.Line(*s)
	}
	e.Output = o.String(e.Output)
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	e.Time = e.Time.UTC()
	return e
}

// patience is how many events may wait for a reader before the agents' actions
// among them and what goes on are dropped; facts are always kept.
const patience = 4096

func passing(e state.Event) bool {
	return e.Kind == state.Action || e.Kind == state.Progress || e.Kind == state.Running
}

func (v *View) put(e state.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.waiting) >= patience {
		if passing(e) {
			return
		}
		v.waiting = slices.DeleteFunc(v.waiting, passing)
	}
	v.waiting = append(v.waiting, e)
	select {
	case v.wake <- struct{}{}:
	default:
	}
}

// Close returns when all that was emitted is shown and the terminal is as it
// was. A second time it does nothing.
func (v *View) Close() {
	v.unhook()
	v.end()
	<-v.done
}
