package redact

import (
	"bytes"
	"io"
)

// Writer takes secrets out of what passes through it. It holds back the end of
// a write that may be the beginning of a secret, so Close must be called.
type Writer struct {
	r     *Redactor
	to    io.Writer
	held  []byte // not decided yet, shorter than the longest form
	cover int    // bytes at the beginning of held that belong to a secret
	out   []byte
}

// Writer returns a writer to w without the secrets.
func (r *Redactor) Writer(w io.Writer) *Writer { return &Writer{r: r, to: w} }

// Write takes the next chunk.
func (w *Writer) Write(p []byte) (int, error) {
	w.held = append(w.held, p...)
	if err := w.pass(false); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close writes what was held back. It does not close the underlying writer.
func (w *Writer) Close() error { return w.pass(true) }

// pass decides on every byte that it can. Secrets that overlap are covered to
// the end of the last one, and shown as the first.
func (w *Writer) pass(last bool) error {
	at := 0
	for at < len(w.held) {
		if w.cover == 0 {
			at += w.skip(w.held[at:])
		}
		rest := w.held[at:]
		if len(rest) == 0 || !last && w.r.mayBegin(rest) {
			break
		}
		f := w.r.match(rest)
		if w.cover == 0 && f.spelling != nil {
			w.out = append(w.out, f.shown...)
		}
		w.cover = max(w.cover, len(f.spelling))
		if w.cover > 0 {
			w.cover--
		} else {
			w.out = append(w.out, rest[0])
		}
		at++
	}
	w.held = append(w.held[:0], w.held[at:]...)
	return w.flush()
}

// skip passes the bytes on with which no secret begins, and counts them.
func (w *Writer) skip(rest []byte) int {
	n := 0
	for n < len(rest) && !w.r.first[rest[n]] {
		n++
	}
	w.out = append(w.out, rest[:n]...)
	return n
}

func (w *Writer) flush() error {
	if len(w.out) == 0 {
		return nil
	}
	_, err := w.to.Write(w.out)
	w.out = w.out[:0]
	return err
}

// mayBegin says whether rest is the beginning of a form and not all of it.
func (r *Redactor) mayBegin(rest []byte) bool {
	for _, f := range r.forms {
		if len(f.spelling) <= len(rest) {
			return false // the longest come first
		}
		if bytes.HasPrefix(f.spelling, rest) {
			return true
		}
	}
	return false
}

// match returns the longest form with which rest begins, the zero form for none.
func (r *Redactor) match(rest []byte) form {
	for _, f := range r.forms {
		if bytes.HasPrefix(rest, f.spelling) {
			return f
		}
	}
	return form{}
}
