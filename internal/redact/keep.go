package redact

import (
	"bytes"
	"errors"
	"io"
	"os"
)

// Keep makes safe the file f, which took the output of an agent that has ended. A file
// that is safe already, as nearly all are, is left untouched; another one replace writes
// anew as a whole with what it is given. It is the caller's, for the gateway has this
// package and no other's code.
func (o *Sanitizer) Keep(f *os.File, replace func(fill func(io.Writer) error) error) error {
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	same := &comparer{with: f}
	err = o.copy(same, f)
	if err == nil && same.at != fi.Size() {
		err = errDiffers
	}
	if !errors.Is(err, errDiffers) {
		return err
	}
	return replace(func(w io.Writer) error { return o.copy(w, f) })
}

// copy passes the whole file through the sanitizer.
func (o *Sanitizer) copy(w io.Writer, f *os.File) error {
	log := o.Log(&bounded{to: w, left: mostKept})
	seen := &nulRuns{to: log}
	_, err := io.Copy(seen, io.NewSectionReader(f, 0, 1<<62))
	return errors.Join(err, seen.Close(), log.Close())
}

// errDiffers says that a file is not what it should be.
var errDiffers = errors.New("it differs")

// comparer compares what is written to it with a file.
type comparer struct {
	with *os.File
	at   int64
	buf  []byte
}

func (c *comparer) Write(p []byte) (int, error) {
	if len(c.buf) < len(p) {
		c.buf = make([]byte, len(p))
	}
	n, err := c.with.ReadAt(c.buf[:len(p)], c.at)
	c.at += int64(n)
	if n < len(p) || !bytes.Equal(c.buf[:n], p) {
		return 0, errors.Join(errDiffers, err)
	}
	return len(p), nil
}
