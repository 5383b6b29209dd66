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
	EventListening = "listening" // the broker accepts requests
	EventReady     = "ready"     // the app is ready; MS since its start
	EventFailed    = "failed"    // the app or a service did not become ready; Exit if the app ended
	// The app or a background command ended after its start; MS since the start.
	EventExited    = "exited"
	EventRestarted = "restarted" // the app is ready after a restart; MS since its start
	EventCommand   = "command"   // a declared command ended; MS since its start
)

// openForAbl opens an existing file of abl for appending. abl would not see a new file.
func openForAbl(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
}

// events appends to the file that abl reads. Each line is one write, so that abl never reads a part of a
// line.
type events struct {
	mu   sync.Mutex
	file *os.File
}

func (e *events) add(ev helper.Event) {
	line, _ := json.Marshal(ev) // strings and numbers always encode
	e.mu.Lock()
	defer e.mu.Unlock()
	// An error cannot be reported. The timeout of abl notices the missing event.
	_, _ = e.file.Write(append(line, '\n'))
	_ = e.file.Sync()
}

func since(start time.Time) int64 { return time.Since(start).Milliseconds() }

// appLog stores the output of the app and of the commands. Programs write into a pipe instead of the
// file, so that the size of the file is bounded, and so that a program can write after its parent ended.
type appLog struct {
	pipe *os.File // where programs write
	read *os.File
	done chan struct{}
}

// keepLog returns a log that writes the first max bytes of the output to file.
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
			fmt.Fprintf(file, "\nabl: the log is full: %d more bytes were left out\n", n)
		}
	}()
	return l, nil
}

// note writes a message of abl to the log.
func (l *appLog) note(format string, args ...any) {
	fmt.Fprintf(l.pipe, "abl: "+format+"\n", args...)
}

// close reads the rest of the pipe and ends the log, even if a program still has the pipe open.
func (l *appLog) close() {
	l.pipe.Close()
	_ = l.read.SetReadDeadline(time.Now().Add(time.Second))
	<-l.done
	l.read.Close()
}
