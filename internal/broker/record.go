package broker

import (
	"encoding/json"
	"fmt"
	"io"
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
	// The app or a background command ended after it was up; MS since its start.
	EventExited    = "exited"
	EventRestarted = "restarted" // the app answers again after a restart; MS since its start
	EventCommand   = "command"   // a declared command ended; MS since its start
)

// openForAbl opens a file that abl made before; a new one it would never see.
func openForAbl(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
}

// events appends to the file that abl reads, one write a line, so that a line
// is there as a whole or not at all.
type events struct {
	mu   sync.Mutex
	file *os.File
}

func (e *events) add(ev helper.Event) {
	line, _ := json.Marshal(ev) // strings and numbers always encode
	e.mu.Lock()
	defer e.mu.Unlock()
	// Nobody is there to hear of a failure; abl's own timeout notices the silence.
	_, _ = e.file.Write(append(line, '\n'))
	_ = e.file.Sync()
}

func since(start time.Time) int64 { return time.Since(start).Milliseconds() }

// appLog takes the output of the app and of the commands. Programs write into
// a pipe of the kernel's and not into the file, so that the file's size is
// bounded and a program that outlives the one that started it can still write.
type appLog struct {
	pipe *os.File // where programs write
	read *os.File
	done chan struct{}
}

// keepLog keeps the first max bytes of the output in file.
func keepLog(file io.Writer, max int64) (*appLog, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("cannot make a pipe for the app's log: %w", err)
	}
	l := &appLog{pipe: w, read: r, done: make(chan struct{})}
	go func() {
		defer close(l.done)
		_, _ = io.CopyN(file, r, max)
		if n, _ := io.Copy(io.Discard, r); n > 0 {
			fmt.Fprintf(file, "\nabl: the log is full: %d bytes more are not kept\n", n)
		}
	}()
	return l, nil
}

// note writes a line of the broker's own.
func (l *appLog) note(format string, args ...any) {
	fmt.Fprintf(l.pipe, "abl: "+format+"\n", args...)
}

// close ends the log once all that is in the pipe has been read, even if a
// program still holds the pipe.
func (l *appLog) close() {
	l.pipe.Close()
	_ = l.read.SetReadDeadline(time.Now().Add(time.Second))
	<-l.done
	l.read.Close()
}
