package broker

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"abl/internal/helper"
)

// The events that abl reads from the broker's events file.
const (
	EventListening = "listening" // the broker takes requests
	EventReady     = "ready"     // the app answers; MS since its start
	EventFailed    = "failed"    // the app or a service did not come up; Exit when the app ended
	EventExited    = "exited"    // the app or a background command ended after it was up; MS since its start
	EventRestarted = "restarted" // the app answers again after a restart; MS since its start
	EventCommand   = "command"   // a declared command ended; MS since its start
)

// events appends to the file that abl reads, one write a line, so that a line
// is there as a whole or not at all.
type events struct {
	mu   sync.Mutex
	file *os.File
}

// openEvents opens the file that abl made before; a new one it would never see.
func openEvents(path string) (*events, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot open the events file: %w", err)
	}
	return &events{file: f}, nil
}

func (e *events) add(ev helper.Event) {
	line, err := json.Marshal(ev)
	if err != nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	// Nobody is there to hear of a failure; abl's own timeout notices the silence.
	_, _ = e.file.Write(append(line, '\n'))
	_ = e.file.Sync()
}

func (e *events) close() { e.file.Close() }

func since(start time.Time) int64 { return time.Since(start).Milliseconds() }
