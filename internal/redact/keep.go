package redact

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"io"
	"os"
)

// Keep makes safe the file f, which took the output of an agent that has ended. A file
// that is safe already, as nearly all are, is left untouched; another one replace writes
// anew as a whole with what it is given. It is the caller's, for the gateway has this
// package and no other's code.
func (o *Sanitizer) Keep(f *os.File, replace func(fill func(io.Writer) error) error) error {
	before, after := sha256.New(), sha256.New()
	if err := o.copy(after, f, before); err != nil || bytes.Equal(before.Sum(nil), after.Sum(nil)) {
		return err
	}
	return replace(func(w io.Writer) error { return o.copy(w, f, io.Discard) })
}

// copy passes the whole file through the sanitizer, and as it is to seen.
func (o *Sanitizer) copy(w io.Writer, f *os.File, seen io.Writer) error {
	log := o.Log(&bounded{to: w, left: mostKept})
	_, err := io.Copy(&nulRuns{to: log}, io.TeeReader(io.NewSectionReader(f, 0, 1<<62), seen))
	if err = errors.Join(err, log.Close()); errors.Is(err, errFull) {
		return nil
	}
	return err
}

// longRun is how many NULs in a row are still text, for what little that is.
const longRun = 64

// nulRuns passes text on with long runs of NULs cut short: a file that was made long
// without being written is all NULs, and each would become six visible characters.
type nulRuns struct {
	to  io.Writer
	run int // NULs that were seen last
}

func (h *nulRuns) Write(p []byte) (int, error) {
	kept := make([]byte, 0, len(p))
	for _, b := range p {
		if b != 0 {
			h.run = 0
		} else if h.run++; h.run == longRun+1 {
			kept = append(kept, "\n[abl: more NUL bytes were left out]\n"...)
		}
		if h.run <= longRun {
			kept = append(kept, b)
		}
	}
	_, err := h.to.Write(kept)
	return len(p), err
}

// mostKept is how long a kept file can become, in bytes: what is not to be seen
// takes four times the room when it is made visible.
const mostKept = 1 << 30

// errFull says that there was room for no more, which is written there too.
var errFull = errors.New("no more is kept")

// bounded passes on what there is room for.
type bounded struct {
	to   io.Writer
	left int64 // below 0 when it has said that there is more
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.left < 0 {
		return 0, errFull
	}
	n, err := b.to.Write(p[:min(int64(len(p)), b.left)])
	if b.left -= int64(n); n < len(p) && err == nil {
		b.left = -1
		_, err = io.WriteString(b.to, "\n[abl: the rest was left out]\n")
		err = cmp.Or(err, errFull)
	}
	return n, err
}
