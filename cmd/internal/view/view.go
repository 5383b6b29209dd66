// Package view shows a running phase: as one JSON line an event, as plain lines
// for pipes, or as lines with a live status below them on a terminal. What
// agents wrote is made safe before any of them sees it, and nothing that
// happens to the reader reaches the run. It makes no event and decides nothing.
package view

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"abl/cmd/internal/exit"
	"abl/internal/redact"
	"abl/internal/state"
)

// View is an state.Sink that never blocks and never fails.
type View struct {
	queue  *queue
	safe   *redact.Sanitizer
	done   chan struct{}
	unhook func() bool
}

// painter shows events one by one. Its methods are called by one goroutine.
type painter interface {
	show(state.Event)
	tick()  // from time to time
	close() // once, at the end
}

// Open begins a view; Close ends it. When a signal ends ctx the person is told
// so at once.
func Open(ctx context.Context, o Options) (*View, error) {
	painters, err := choose(o)
	if err != nil {
		return nil, err
	}
	v := start(painters, time.Tick(200*time.Millisecond))
	v.safe = o.Safe
	v.unhook = context.AfterFunc(ctx, func() {
		var s exit.Signal
		if errors.As(context.Cause(ctx), &s) {
			v.queue.put(state.Event{Kind: stopping, Time: time.Now().UTC(), Text: s.Name() + ": stopping, what was reached is being saved; once more (Ctrl-C) leaves at once"})
		}
	})
	return v, nil
}

// stopping is a word of the view's own, for people only.
const stopping state.Kind = "stopping"

// start runs the painters in a goroutine of their own.
func start(painters []painter, tick <-chan time.Time) *View {
	v := &View{queue: newQueue(), done: make(chan struct{}), unhook: func() bool { return true }}
	go func() {
		defer close(v.done)
		v.paint(painters, tick)
	}()
	return v
}

func (v *View) paint(painters []painter, tick <-chan time.Time) {
	for {
		select {
		case <-tick:
			for _, p := range painters {
				p.tick()
			}
		case <-v.queue.wake:
			events, more := v.queue.take()
			for _, e := range events {
				for _, p := range painters {
					p.show(e)
				}
			}
			if more {
				continue
			}
			for _, p := range painters {
				p.close()
			}
			return
		}
	}
}

// Emit hands an event to the view, whatever its reader is doing.
func (v *View) Emit(e state.Event) { v.queue.put(clean(e, v.safe)) }

// Close returns when all that was emitted is shown and the terminal is as it
// was. A second time it does nothing.
func (v *View) Close() {
	v.unhook()
	v.queue.close()
	<-v.done
}

// clean makes the words of an event safe for any reader and puts each on one line.
func clean(e state.Event, o *redact.Sanitizer) state.Event {
	for _, s := range []*string{&e.Role, &e.Call, &e.Agent, &e.Model, &e.Class, &e.Verdict, &e.Hash, &e.Subject, &e.Text, &e.Evidence, &e.CostUSD} {
		*s = o.Line(*s)
	}
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	e.Time = e.Time.UTC()
	return e
}

// patience is how many events may wait for a reader before the agents' actions
// among them are dropped; facts are always kept.
const patience = 4096

// queue holds what was emitted and not shown yet, so that a reader who does not
// read holds up no run.
type queue struct {
	wake chan struct{} // has one entry when there is something to take

	mu      sync.Mutex
	waiting []state.Event
	closed  bool
}

func newQueue() *queue { return &queue{wake: make(chan struct{}, 1)} }

func (q *queue) put(e state.Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	if len(q.waiting) >= patience {
		if e.Kind == state.Action {
			return
		}
		q.waiting = slices.DeleteFunc(q.waiting, func(w state.Event) bool { return w.Kind == state.Action })
	}
	q.waiting = append(q.waiting, e)
	q.poke()
}

// take empties the queue. more is false when nothing will come any more.
func (q *queue) take() (events []state.Event, more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	events, q.waiting = q.waiting, nil
	return events, !q.closed
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.closed = true
		q.poke()
	}
}

func (q *queue) poke() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}
