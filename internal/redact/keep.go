package redact

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"io"
	"os"
)

// Keep makes the file f safe, which has the output of an agent that has ended. It does not change a
// file that is already safe, as nearly all are. Otherwise it calls replace to rewrite the file with
// the content that fill writes. The caller provides replace, because the gateway contains this
// package, but not hostfs.
func (o *Sanitizer) Keep(f *os.File, replace func(fill func(io.Writer) error) error) error {
	before, after := sha256.New(), sha256.New()
	if err := o.copy(after, f, before); err != nil || bytes.Equal(before.Sum(nil), after.Sum(nil)) {
		return err
	}
	return replace(func(w io.Writer) error { return o.copy(w, f, io.Discard) })
}

// copy writes the sanitized file to w and the original to seen.
func (o *Sanitizer) copy(w io.Writer, f *os.File, seen io.Writer) error {
	log := o.Log(&bounded{to: w, left: maxKept})
	_, err := io.Copy(&nulRuns{to: log}, io.TeeReader(io.NewSectionReader(f, 0, 1<<62), seen))
	if err = errors.Join(err, log.Close()); errors.Is(err, errFull) {
		return nil
	}
	return err
}

// longRun is the number of consecutive NULs that nulRuns keeps.
const longRun = 64

// nulRuns cuts long runs of NULs: a sparse file contains only NULs, and each would become six
// characters.
type nulRuns struct {
	to  io.Writer
	run int // length of the current run of NULs
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

// maxKept is the maximum size of a sanitized file in bytes. Invisible characters need four times
// their size.
const maxKept = 1 << 30

// errFull means that the file has reached its maximum size.
var errFull = errors.New("the output is full")

// bounded is a writer with a maximum size.
type bounded struct {
	to   io.Writer
	left int64 // remaining size, negative after the mark for the rest
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
