// Package view shows a running phase: as one JSON line per event, as plain lines for pipes,
// or as lines with a live status line on a terminal. It redacts secrets and escape sequences
// first. A reader that is slow or goes away never blocks or fails the run.
package view

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
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

// Quiet is a value of Options.Progress that shows nothing. Only the command's error is printed.
const Quiet = "quiet"

// Options select what a View shows and where.
type Options struct {
	Progress string // "" is Auto
	// JSON prints events on Stdout, and progress only where Progress asks for it.
	JSON   bool
	Stdout io.Writer         // receives the events
	Stderr io.Writer         // receives the progress
	Safe   *redact.Sanitizer // redacts both
}

// View is a state.Sink that never blocks and never fails. It queues events for slow readers.
type View struct {
	events *jsonLines // nil: print no JSON
	facts  *lines     // nil: print no progress
	safe   *redact.Sanitizer
	unhook func() bool
	wake   chan struct{} // has one entry when waiting is not empty
	end    func()
	ended  chan struct{}
	done   chan struct{}

	mu      sync.Mutex
	waiting []state.Event
}

// Open starts a view; the caller must Close it. When a signal ends ctx, the view prints that abl is
// stopping.
func Open(ctx context.Context, o Options) *View { return open(ctx, o, time.Tick(200*time.Millisecond)) }

// open starts a View that updates its status line at each tick.
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
			text := s.Name() + ": stopping and saving; press Ctrl-C again to exit immediately"
			v.put(state.Event{Kind: stopping, Time: time.Now().UTC(), Text: text})
		}
	})
	return v
}

// stopping is an event of the view. It is not part of the JSON events.
const stopping state.Kind = "stopping"

// show prints queued events and redraws the status line on each tick, until Close.
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

// Emit queues an event. Its texts are redacted, and all but Output are put on one line. Notes keep their
// indentation.
func (v *View) Emit(e state.Event) { v.put(clean(e, v.safe)) }

func clean(e state.Event, o *redact.Sanitizer) state.Event {
	indent := ""
	if e.Kind == state.Note {
		indent = e.Text[:len(e.Text)-len(strings.TrimLeft(e.Text, " "))]
	}
	for _, s := range []*string{
		&e.Role, &e.Call, &e.Agent, &e.Model, &e.Class, &e.Verdict,
		&e.Hash, &e.Subject, &e.Text, &e.Evidence, &e.CostUSD,
	} {
		*s = o.Line(*s)
	}
	e.Text = indent[:min(len(indent), 4)] + e.Text
	e.Output = o.String(e.Output)
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	e.Time = e.Time.UTC()
	return e
}

// maxWaiting is the length of the queue from which on droppable events are dropped.
const maxWaiting = 4096

// droppable reports whether an event may be lost for a slow reader.
func droppable(e state.Event) bool {
	return e.Kind == state.Action || e.Kind == state.Progress || e.Kind == state.Running
}

// put adds an event to the queue of the printing goroutine. If the queue is full, it drops events
// that may be lost.
func (v *View) put(e state.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.waiting) >= maxWaiting {
		if droppable(e) {
			return
		}
		v.waiting = slices.DeleteFunc(v.waiting, droppable)
	}
	v.waiting = append(v.waiting, e)
	select {
	case v.wake <- struct{}{}:
	default:
	}
}

// Close shows the queued events and restores the terminal. Further calls do nothing.
func (v *View) Close() {
	v.unhook()
	v.end()
	<-v.done
}
