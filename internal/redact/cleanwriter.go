package redact

import "io"

// cleanWriter makes safe what passes through it, whatever the chunks.
type cleanWriter struct {
	to io.Writer
	c  cleaner
}

// newCleanWriter makes what is written to it safe and writes it to w, each line
// after prefix, which is abl's own and taken as it is.
func newCleanWriter(w io.Writer, prefix string) *cleanWriter {
	return &cleanWriter{to: w, c: cleaner{prefix: prefix}}
}

// newCleanLog makes safe what is to be kept in a file: lines are never cut, and what
// is taken out is spelled as JSON spells it, so that a line that was JSON still
// is.
func newCleanLog(w io.Writer) *cleanWriter { return &cleanWriter{to: w, c: cleaner{log: true}} }

// Write takes the next chunk. A character that the chunk ends in the middle of
// waits for the next one.
func (w *cleanWriter) Write(p []byte) (int, error) {
	w.c.text(p)
	if err := w.flush(); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close writes what waits and ends a line that was begun after a prefix. It does
// not close the underlying writer.
func (w *cleanWriter) Close() error {
	w.c.rest()
	if w.c.inLine && w.c.prefix != "" {
		w.c.char('\n', []byte{'\n'})
	}
	return w.flush()
}

func (w *cleanWriter) flush() error {
	if len(w.c.out) == 0 {
		return nil
	}
	_, err := w.to.Write(w.c.out)
	w.c.out = w.c.out[:0]
	return err
}
