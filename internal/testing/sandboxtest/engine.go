// Package sandboxtest implements a container engine in memory. It has the methods of
// sandbox/docker, and runs scripts in place of processes. It records the calls and fails the ones
// that a test selects. Conform is the test suite that both engines pass.
package sandboxtest

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"abl/internal/sandbox"
)

// Script does the work of a container and returns its exit.
type Script func(container sandbox.ContainerConfig) sandbox.Exit

// Engine is an engine in memory. The zero value is ready to use. Set the exported fields before
// the first call. Its methods are safe for concurrent use.
type Engine struct {
	// Scripts maps the prefix of a container's name (the longest match wins), its role label, its
	// kind label, or "" for all others, to its script. A container without a script runs until it
	// is stopped. Start runs the script in a goroutine, or synchronously if Sync is set.
	Scripts map[string]Script
	Sync    bool
	Images  []string                             // available images; nil: every image
	Now     func() time.Time                     // defaults to time.Now
	Is      sandbox.Info                         // result of Info
	Busy    func(name string) sandbox.Load       // result of Load
	Used    func(volume string) int64            // result of Usage; nil: 0
	Opening func(sandbox.ContainerConfig) string // first output of abl-run in a container; defaults to a valid proof
	Arrived int                                  // datagrams that the listener on the engine's machine reports
	Stopped func(sandbox.ContainerConfig)        // what a program does on a stop before it ends; nil: nothing

	mu         sync.Mutex
	containers map[string]*container
	networks   map[string]sandbox.Network
	volumes    map[string]sandbox.Volume
	journal    []string
	faults     map[string]map[int]fault
	calls      map[string]int
	made       int
}

type container struct {
	sandbox.ContainerConfig
	status  sandbox.Status
	log     []byte
	printed chan struct{}     // closed and replaced whenever something is printed
	files   map[string][]byte // from CopyIn, by path in the container
	over    chan struct{}     // closed at the end and at the removal
	fed     chan []byte       // data from Feed
	forced  string            // replaces the reported exit
}

func (b *container) print(text string) {
	b.log = append(b.log, text...)
	close(b.printed)
	b.printed = make(chan struct{})
}

type fault struct {
	err   error
	after bool
}

// Fail makes the nth call of a method, counted from 1, return err without doing anything.
func (e *Engine) Fail(method string, nth int, err error) { e.plan(method, nth, fault{err: err}) }

// FailAfter makes the nth call of a method do its work and then return err, as if the response
// was lost.
func (e *Engine) FailAfter(method string, nth int, err error) {
	e.plan(method, nth, fault{err: err, after: true})
}

func (e *Engine) plan(method string, nth int, f fault) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.faults == nil {
		e.faults = map[string]map[int]fault{}
	}
	if e.faults[method] == nil {
		e.faults[method] = map[int]fault{}
	}
	e.faults[method][nth] = f
}

// Journal returns the calls so far, one per line, in order.
func (e *Engine) Journal() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return strings.Join(e.journal, "")
}

// Forget empties the journal.
func (e *Engine) Forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.journal = nil
}

// call records a call, runs its work under the lock and applies planned faults.
func (e *Engine) call(method, object string, work func() error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.journal = append(e.journal, fmt.Sprintln(strings.TrimSpace(method+" "+object)))
	if e.calls == nil {
		e.calls = map[string]int{}
	}
	e.calls[method]++
	planned, ok := e.faults[method][e.calls[method]]
	if ok && !planned.after {
		return planned.err
	}
	if err := work(); err != nil {
		return err
	}
	return planned.err
}

func (e *Engine) now() time.Time {
	if e.Now != nil {
		return e.Now()
	}
	return time.Now()
}

// Config returns a container as it was created.
func (e *Engine) Config(name string) (sandbox.ContainerConfig, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	b, ok := e.containers[name]
	if !ok {
		return sandbox.ContainerConfig{}, false
	}
	return b.ContainerConfig, true
}

// Copied returns the files that CopyIn wrote to a container, by path.
func (e *Engine) Copied(name string) map[string][]byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	if b, ok := e.containers[name]; ok {
		return maps.Clone(b.files)
	}
	return nil
}

// Print appends to a container's log.
func (e *Engine) Print(name, text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if b, ok := e.containers[name]; ok {
		b.print(text)
	}
}

// WhileRunning runs work unless the container has ended, because an ended container changes
// nothing.
func (e *Engine) WhileRunning(name string, work func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if b, ok := e.containers[name]; ok && b.status.State == sandbox.Running {
		work()
	}
}

// Finish ends a running container from outside.
func (e *Engine) Finish(name string, exit sandbox.Exit) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if b, ok := e.containers[name]; ok {
		e.end(b, exit)
	}
}

// Close does nothing.
func (e *Engine) Close() error { return nil }
