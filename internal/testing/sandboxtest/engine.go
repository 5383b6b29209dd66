// Package sandboxtest is a container engine in memory: the method set of
// sandbox/docker with scripts in place of processes. It prints what is asked
// of it and fails where a test says so. Conform is the one suite that both
// engines pass.
package sandboxtest

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"abl/internal/sandbox"
)

// Script plays what runs in a box and says how it ends.
type Script func(box sandbox.Box) sandbox.Exit

// Engine is an engine in memory. The zero value is ready to use; set the
// exported fields before the first call. Its methods may be called from
// several goroutines.
type Engine struct {
	// Scripts by the beginning of a box's name (the longest one wins), or by its
	// role label, or by its kind label, or "" for the rest. A box without a script
	// runs until it is stopped. A script runs in a goroutine from Start on, or
	// within Start when Sync.
	Scripts map[string]Script
	Sync    bool
	Images  []string                       // those that are there; nil: every one
	Now     func() time.Time               // defaults to time.Now
	Is      sandbox.Info                   // what Info answers
	Busy    func(name string) sandbox.Load // what Load answers
	Used    func(volume string) int64      // what Usage returns; nil: 0
	Opening func(sandbox.Box) string       // what abl-run prints first in a box; defaults to a proof that holds
	Stopped func(sandbox.Box)              // what a program does about a stop before it ends; nil: nothing

	mu       sync.Mutex
	boxes    map[string]*box
	networks map[string]sandbox.Network
	volumes  map[string]sandbox.Volume
	journal  []string
	faults   map[string]map[int]fault
	calls    map[string]int
	made     int
}

type box struct {
	sandbox.Box
	status  sandbox.Status
	log     []byte
	printed chan struct{}     // closed, and made anew, whenever something is printed
	files   map[string][]byte // from CopyIn, by path inside
	over    chan struct{}     // closed at the end, and at the removal
	fed     chan []byte       // what Feed brought
	forced  string            // of how it ended
}

func (b *box) print(text string) {
	b.log = append(b.log, text...)
	close(b.printed)
	b.printed = make(chan struct{})
}

type fault struct {
	err   error
	after bool
}

// Fail makes the nth call (from 1) of a method, by its name, return err and do nothing.
func (e *Engine) Fail(method string, nth int, err error) { e.plan(method, nth, fault{err: err}) }

// FailAfter makes the nth call of a method do its work and return err all the
// same, as when the answer is lost on its way.
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

// Journal returns the calls so far, one a line, in their order.
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

// call notes a call, runs its work under the lock and deals with planned faults.
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

// Box returns a box as it was created, for a test to look at.
func (e *Engine) Box(name string) (sandbox.Box, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	b, ok := e.boxes[name]
	if !ok {
		return sandbox.Box{}, false
	}
	return b.Box, true
}

// Copied returns what CopyIn brought into a box, by path inside.
func (e *Engine) Copied(name string) map[string][]byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	if b, ok := e.boxes[name]; ok {
		return maps.Clone(b.files)
	}
	return nil
}

// Print adds to a box's log, as a script does that prints.
func (e *Engine) Print(name, text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if b, ok := e.boxes[name]; ok {
		b.print(text)
	}
}

// WhileRunning does work unless the box has ended: an ended one changes nothing any more.
func (e *Engine) WhileRunning(name string, work func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if b, ok := e.boxes[name]; ok && b.status.State == sandbox.Running {
		work()
	}
}

// Finish ends a running box from outside.
func (e *Engine) Finish(name string, exit sandbox.Exit) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if b, ok := e.boxes[name]; ok {
		e.end(b, exit)
	}
}

// Close does nothing.
func (e *Engine) Close() error { return nil }
