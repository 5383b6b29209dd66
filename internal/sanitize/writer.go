package sanitize

import "io"

// Writer makes safe what passes through it, whatever the chunks.
type Writer struct {
	to io.Writer
	c  cleaner
}

// NewWriter makes what is written to it safe and writes it to w, each line
// after prefix, which is abl's own and taken as it is.
func NewWriter(w io.Writer, prefix string) *Writer {
	return &Writer{to: w, c: cleaner{prefix: prefix}}
}

// NewLog makes safe what is to be kept in a file: lines are never cut, and what
// is taken out is spelled as JSON spells it, so that a line that was JSON still
// is.
func NewLog(w io.Writer) *Writer { return &Writer{to: w, c: cleaner{log: true}} }

// Write takes the next chunk. A character that the chunk ends in the middle of
// waits for the next one.
func (w *Writer) Write(p []byte) (int, error) {
	w.c.text(p)
	if err := w.flush(); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close writes what waits and ends a line that was begun after a prefix. It does
// not close the underlying writer.
func (w *Writer) Close() error {
	w.c.rest()
	if w.c.inLine && w.c.prefix != "" {
		w.c.char('\n', []byte{'\n'})
	}
	return w.flush()
}

func (w *Writer) flush() error {
	if len(w.c.out) == 0 {
		return nil
	}
	_, err := w.to.Write(w.c.out)
	w.c.out = w.c.out[:0]
	return err
}
