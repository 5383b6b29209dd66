package docker

import (
	"context"
	"sync"
	"time"
)

// patience is how long calls are repeated while the engine is away, in all: an
// engine that is restarted is back within seconds, and what it ran is not lost.
type patience struct {
	mu    sync.Mutex
	ends  context.Context // nobody waits any longer
	span  time.Duration
	tell  func(away time.Duration, back bool)
	since time.Time // when it was found to be away; zero while it answers
}

// Patient has every call wait up to span for an engine that does not answer, until
// ends does. tell hears when the waiting begins, and when it was worth while.
func (e *conn) Patient(ends context.Context, span time.Duration, tell func(away time.Duration, back bool)) {
	e.patience.mu.Lock()
	defer e.patience.mu.Unlock()
	e.patience.ends, e.patience.span, e.patience.tell = ends, span, tell
}

// holds is asked after a call in vain.
func (p *patience) holds() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.span <= 0 || p.ends.Err() != nil {
		return false
	}
	if p.since.IsZero() {
		p.since = time.Now()
		p.tell(0, false)
	}
	return time.Since(p.since) < p.span
}

// over notes that the engine answered.
func (p *patience) over() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.since.IsZero() {
		p.tell(time.Since(p.since), true)
		p.since = time.Time{}
	}
}
