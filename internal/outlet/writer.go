package outlet

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"abl/internal/redact"
	"abl/internal/sanitize"
)

// Writer makes safe what passes through it.
type Writer struct {
	o      *Outlet
	mu     sync.Mutex
	redact *redact.Writer
	clean  *sanitize.Writer
	voice  bool
}

// Writer passes on to w what an agent printed, in whatever chunks, each line
// after prefix. Close must be called; it does not close w.
func (o *Outlet) Writer(w io.Writer, prefix string) *Writer {
	return o.through(sanitize.NewWriter(w, prefix))
}

// Log passes on to w what is kept of an agent's output: whole lines, and JSON
// stays JSON. Close must be called; it does not close w.
func (o *Outlet) Log(w io.Writer) *Writer { return o.through(sanitize.NewLog(w)) }

// Voice passes on to w what abl says itself. What is written in one piece and
// ends a line is shown at once.
func (o *Outlet) Voice(w io.Writer) *Writer {
	v := o.through(sanitize.NewWriter(w, ""))
	v.voice = true
	return v
}

func (o *Outlet) through(clean *sanitize.Writer) *Writer {
	return &Writer{o: o, redact: o.redactor().Writer(clean), clean: clean}
}

// Fold makes the writer break long lines for a terminal, see sanitize.
func (w *Writer) Fold(columns int) { w.clean.Fold(columns) }

// Write takes the next chunk.
func (w *Writer) Write(p []byte) (int, error) {
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
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(w.redact.Close(), w.clean.Close())
}
