package redact

import (
	"fmt"
	"io"
)

// longRun is how many NULs in a row are still text, for what little that is.
const longRun = 64

// nulRuns passes text on and counts long runs of NULs instead of passing them: a
// file that was made long without being written is all NULs, and each would
// become four visible characters.
type nulRuns struct {
	to  io.Writer
	run int64 // NULs that were seen last and not passed on
}

func (h *nulRuns) Write(p []byte) (int, error) {
	for begin := 0; begin < len(p); {
		end := begin
		for end < len(p) && p[end] == 0 {
			end++
		}
		h.run += int64(end - begin)
		if end == len(p) {
			break
		}
		if err := h.Close(); err != nil {
			return begin, err
		}
		for begin = end; end < len(p) && p[end] != 0; {
			end++
		}
		if _, err := h.to.Write(p[begin:end]); err != nil {
			return begin, err
		}
		begin = end
	}
	return len(p), nil
}

// Close passes on the run that is open.
func (h *nulRuns) Close() (err error) {
	switch {
	case h.run > longRun:
		_, err = fmt.Fprintf(h.to, "[abl: %d NUL bytes]\n", h.run)
	case h.run > 0:
		_, err = h.to.Write(make([]byte, h.run))
	}
	h.run = 0
	return err
}

// mostKept is how long a kept file can become, in bytes: what is not to be seen
// takes four times the room when it is made visible.
const mostKept = 1 << 30

// bounded passes on what there is room for, and says once that there is more.
type bounded struct {
	to   io.Writer
	left int64
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.left < 0 {
		return len(p), nil
	}
	n := min(int64(len(p)), b.left)
	b.left -= n
	if _, err := b.to.Write(p[:n]); err != nil {
		return 0, err
	}
	if n < int64(len(p)) {
		b.left = -1
		if _, err := io.WriteString(b.to, "\n[abl: the rest was left out]\n"); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}
