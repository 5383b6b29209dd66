package view

import (
	"slices"
	"sync"

	"abl/internal/state"
)

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
