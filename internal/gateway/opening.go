package gateway

import (
	"net/http"
	"sync"
	"time"
)

// patienceForBody is how long an answer's headers wait for the first piece of its
// body, to go out with it. Providers mostly send both at once; a client that gets
// them at once wakes up once.
const patienceForBody = 5 * time.Millisecond

// opening sends an answer's status and headers, with its first piece or soon.
type opening struct {
	mu    sync.Mutex
	timer *time.Timer
	sent  bool
}

// open writes the status now and lets it out when the body is late.
func open(w http.ResponseWriter, status int, flush func() error) *opening {
	w.WriteHeader(status)
	o := &opening{}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.timer = time.AfterFunc(patienceForBody, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if !o.sent {
			o.sent = true
			_ = flush() // a client that has left shows at the first piece
		}
	})
	return o
}

// begin ends the wait: from here on only its caller writes.
func (o *opening) begin() {
	o.timer.Stop()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sent = true
}
