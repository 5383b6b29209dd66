package redact

import "io"

// secretWriter takes secrets out of what passes through it. It holds back the end of
// a write that may be the beginning of a secret, so Close must be called.
type secretWriter struct {
	r     *Redactor
	to    io.Writer
	held  []byte // not decided yet, no longer than a form and its line ends
	cover int    // bytes at the beginning of held that belong to a secret
	out   []byte
}

// Writer returns a writer to w without the secrets.
func (r *Redactor) Writer(w io.Writer) *secretWriter { return &secretWriter{r: r, to: w} }

// Use makes the writer go by another Redactor from now on.
func (w *secretWriter) Use(r *Redactor) { w.r = r }

// Write takes the next chunk.
func (w *secretWriter) Write(p []byte) (int, error) {
	w.held = append(w.held, p...)
	if err := w.pass(false); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close writes what was held back. It does not close the underlying writer,
// and the writer can be used on.
func (w *secretWriter) Close() error { return w.pass(true) }

// pass decides on every byte that it can. Secrets that overlap are covered to
// the end of the last one, and shown as the first.
func (w *secretWriter) pass(last bool) error {
	at := 0
	for at < len(w.held) {
		if w.cover == 0 {
			at += w.skip(w.held[at:], last)
		}
		if at == len(w.held) {
			break
		}
		n, shown, more := w.r.match(w.held[at:])
		if more && !last {
			break
		}
		if w.cover == 0 && n > 0 {
			w.out = append(w.out, shown...)
		}
		if w.cover = max(w.cover, n); w.cover > 0 {
			w.cover--
		} else {
			w.out = append(w.out, w.held[at])
		}
		at++
	}
	w.held = append(w.held[:0], w.held[at:]...)
	return w.flush()
}

// skip passes the bytes on with which no secret begins, and counts them.
func (w *secretWriter) skip(rest []byte, last bool) int {
	n, end := 0, len(rest)-1
	for n < end && !w.r.begins(rest[n], rest[n+1]) {
		n++
	}
	if n == end && (last || len(w.r.forms[rest[n]]) == 0) {
		n++
	}
	w.out = append(w.out, rest[:n]...)
	return n
}

func (w *secretWriter) flush() error {
	if len(w.out) == 0 {
		return nil
	}
	_, err := w.to.Write(w.out)
	w.out = w.out[:0]
	return err
}
