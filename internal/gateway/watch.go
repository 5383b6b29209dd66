package gateway

import (
	"sync"
	"sync/atomic"
	"time"
)

// watch calls silent when nothing was noted for as long as idle. Noting is cheap,
// which a timer that is set anew with each piece of an answer is not.
type watch struct {
	idle   time.Duration
	begun  time.Time
	last   atomic.Int64 // since begun
	mu     sync.Mutex
	timer  *time.Timer
	over   bool
	silent func()
}

func newWatch(idle time.Duration, silent func()) *watch {
	w := &watch{idle: idle, begun: time.Now(), silent: silent}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(idle, w.look)
	return w
}

func (w *watch) note() { w.last.Store(int64(time.Since(w.begun))) }

// look is called when it may have been silent for long enough.
func (w *watch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return
	}
	left := w.idle - (time.Since(w.begun) - time.Duration(w.last.Load()))
	if left <= 0 {
		w.silent()
		return
	}
	w.timer.Reset(left)
}

func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.timer.Stop()
}
