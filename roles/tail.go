package roles

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"abl/internal/hostfs"
	"abl/internal/proc"
	"abl/internal/redact"
	"abl/roles/agent"
)

// OpenOutput opens a file that a role writes, or has written, whatever mode the role
// has given it meanwhile.
func OpenOutput(path string) (f *os.File, err error) {
	const tries = 100 // a role may take the rights away again and again
	for range tries {
		if err = ownMode(path); err != nil {
			break
		}
		if f, err = hostfs.Open(filepath.Dir(path), filepath.Base(path)); err == nil {
			return f, nil
		}
		if !errors.Is(err, fs.ErrPermission) {
			break
		}
	}
	return nil, fmt.Errorf("cannot read the output of a call: %w", err)
}

// ownMode gives a file for output the mode back with which abl made it: a role may
// have taken every right away, or let others run it as its owner. Its folder is
// abl's, so no role can exchange it.
func ownMode(path string) error {
	fi, err := os.Lstat(path)
	if err != nil || !fi.Mode().IsRegular() || fi.Mode() == outputMode {
		return nil // what is not there, or no file, is told of by others
	}
	return os.Chmod(path, outputMode)
}

const outputMode fs.FileMode = 0o644

func size(f *os.File) int64 {
	fi, err := f.Stat()
	if err != nil {
		return 0
	}
	return fi.Size()
}

// turn is how much of an output is read before anything else is looked at: an
// agent may print as fast as abl reads, and neither a limit nor a person shall
// wait for it.
const turn = 8 << 20

// Lines hands out the lines of an output, and those written to it until over, which is
// asked before each look, so that none is missed. There may be no file yet.
func Lines(ctx context.Context, path string, to func(line []byte, cut bool), over func() (bool, error)) error {
	t := &tail{to: to}
	for {
		end, err := over()
		if t.in == nil && err == nil {
			f, ferr := OpenOutput(path)
			if ferr == nil {
				defer f.Close()
				t.in = f
			} else if !errors.Is(ferr, hostfs.ErrAbsent) {
				err = ferr
			}
		}
		for all := t.in == nil; !all && err == nil; {
			all, err = t.pump()
			err = cmp.Or(context.Cause(ctx), err)
		}
		switch {
		case err != nil || end && t.in == nil:
			return err
		case end:
			return t.finish()
		}
		if err := proc.Pause(ctx, poll); err != nil {
			return err
		}
	}
}

// Messages takes the lines of an agent's output and hands on what they tell.
func Messages(reader agent.Reader, safe *redact.Sanitizer, each func(agent.Message)) func(line []byte, cut bool) {
	return func(line []byte, cut bool) {
		for _, m := range reader.Line(safe.Bytes(line), cut) {
			each(m)
		}
	}
}

// tail hands out the lines of a growing file, each at most agent.MaxLine long.
type tail struct {
	in   io.Reader
	most int64 // bytes that are read in all, 0 for whatever comes
	to   func(line []byte, cut bool)
	read int64
	line []byte
	cut  bool
	buf  [64 << 10]byte
}

// pump reads what has been written since the last time, a turn of it at most,
// and says whether that was all.
func (t *tail) pump() (all bool, err error) {
	for until := t.read + turn; t.read < until; {
		room := int64(len(t.buf))
		if t.most > 0 {
			room = min(room, t.most-t.read)
		}
		if room == 0 {
			return true, nil
		}
		n, err := t.in.Read(t.buf[:room])
		t.read += int64(n)
		t.feed(t.buf[:n])
		if err == io.EOF || err == nil && n == 0 {
			return true, nil
		}
		if err != nil {
			return true, fmt.Errorf("cannot read the output of a call: %w", err)
		}
	}
	return false, nil
}

// finish reads the rest; a last line needs no newline.
func (t *tail) finish() error {
	for all := false; !all; {
		var err error
		if all, err = t.pump(); err != nil {
			return err
		}
	}
	if len(t.line) > 0 {
		t.flush()
	}
	return nil
}

func (t *tail) feed(data []byte) {
	for len(data) > 0 {
		text, rest, whole := bytes.Cut(data, []byte("\n"))
		if room := agent.MaxLine - len(t.line); len(text) > room {
			text, t.cut = text[:room], true
		}
		t.line = append(t.line, text...)
		if whole {
			t.flush()
		}
		data = rest
	}
}

func (t *tail) flush() {
	t.to(t.line, t.cut)
	t.line, t.cut = t.line[:0], false
	if cap(t.line) > 1<<20 {
		t.line = nil
	}
}
