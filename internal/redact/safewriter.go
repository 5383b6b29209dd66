package redact

import (
	"bytes"
	"errors"
	"io"
	"sync"
)

// SafeWriter makes safe what passes through it.
type SafeWriter struct {
	o      *Sanitizer
	mu     sync.Mutex
	redact *secretWriter
	clean  *cleanWriter
	voice  bool
}

// Writer passes on to w what an agent printed, in whatever chunks, each line
// after prefix. Close must be called; it does not close w.
func (o *Sanitizer) Writer(w io.Writer, prefix string) *SafeWriter {
	return o.through(newCleanWriter(w, prefix))
}

// Log passes on to w what is kept of an agent's output: whole lines, and JSON
// stays JSON. Close must be called; it does not close w.
func (o *Sanitizer) Log(w io.Writer) *SafeWriter { return o.through(newCleanLog(w)) }

// Voice passes on to w what abl says itself. What is written in one piece and
// ends a line is shown at once.
func (o *Sanitizer) Voice(w io.Writer) *SafeWriter {
	v := o.through(newCleanWriter(w, ""))
	v.voice = true
	return v
}

func (o *Sanitizer) through(clean *cleanWriter) *SafeWriter {
	return &SafeWriter{o: o, redact: o.redactor().Writer(clean), clean: clean}
}

// Fold makes the writer break long lines for a terminal.
func (w *SafeWriter) Fold(columns int) { w.clean.Fold(columns) }

// Write takes the next chunk.
func (w *SafeWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.redact.Use(w.o.redactor())
	n, err := w.redact.Write(p)
	if err == nil && w.voice && bytes.HasSuffix(p, []byte("\n")) {
		err = w.redact.Close()
	}
	return n, err
}

// Close writes what was held back.
func (w *SafeWriter) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(w.redact.Close(), w.clean.Close())
}
