package roles

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"abl/internal/hostfs"
	"abl/internal/proc"
	"abl/internal/redact"
	"abl/roles/agent"
)

// OpenOutput opens a file that a role writes or has written. It restores the file's permissions if
// the role changed them.
func OpenOutput(path string) (f *os.File, err error) {
	const tries = 100 // a running role may change the mode again
	for range tries {
		if err = RestoreMode(path); err != nil {
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

// EnsureOutput opens a call's output. It creates a file that is missing after a power cut.
func EnsureOutput(path string) (*os.File, error) {
	f, err := OpenOutput(path)
	if !errors.Is(err, hostfs.ErrAbsent) {
		return f, err
	}
	if err := hostfs.Write(path, nil, OutputMode); err != nil {
		return nil, err
	}
	return OpenOutput(path)
}

// RestoreMode restores the mode of an output file: a role may have removed all permissions, or set the
// setuid bit. The file's folder belongs to abl, so a role cannot replace the file.
func RestoreMode(path string) error {
	fi, err := os.Lstat(path)
	if err != nil || !fi.Mode().IsRegular() || fi.Mode() == OutputMode {
		return nil // callers report a missing or irregular file
	}
	return os.Chmod(path, OutputMode)
}

const OutputMode fs.FileMode = 0o644

// turn is the number of bytes that Pump reads at once. An agent may print as fast as abl reads, and
// limits and cancellation must not wait for it.
const turn = 8 << 20

// Lines calls to with the lines of an output as they are written, until over returns true. It calls
// over before each read, so that no line is missed. The file may be missing at first.
func Lines(ctx context.Context, path string, to func(line []byte, cut bool), over func() (bool, error)) error {
	t := &Tail{To: to}
	for {
		end, err := over()
		if err != nil {
			return err
		}
		if t.In == nil {
			f, err := OpenOutput(path)
			if err == nil {
				defer f.Close()
				t.In = f
			} else if !errors.Is(err, hostfs.ErrAbsent) {
				return err
			}
		}
		for all := false; !all; {
			all, err = t.Pump()
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err != nil {
				return err
			}
		}
		if end {
			return t.Finish()
		}
		if err := proc.Pause(ctx, PollInterval); err != nil {
			return err
		}
	}
}

// Messages returns a function that parses the lines of an agent's output and calls each with the
// messages in them.
func Messages(reader agent.Reader, safe *redact.Sanitizer, each func(agent.Message)) func(line []byte, cut bool) {
	return func(line []byte, cut bool) {
		for _, m := range reader.Line(safe.Bytes(line), cut) {
			each(m)
		}
	}
}

// Tail splits a growing file into lines of at most agent.MaxLine bytes.
type Tail struct {
	In   io.Reader // nil while the file is missing
	Most int64     // bytes to read in all, 0 for any number
	To   func(line []byte, cut bool)
	buf  *bufio.Reader
	Read int64
	line []byte
	cut  bool
}

// Pump reads new output, at most turn bytes, and returns whether it reached the end.
func (t *Tail) Pump() (all bool, err error) {
	switch {
	case t.In == nil:
		return true, nil
	case t.buf == nil && t.Most > 0:
		t.buf = bufio.NewReader(io.LimitReader(t.In, t.Most))
	case t.buf == nil:
		t.buf = bufio.NewReader(t.In)
	}
	for until := t.Read + turn; t.Read < until; {
		piece, err := t.buf.ReadSlice('\n')
		t.add(piece)
		switch {
		case err == io.EOF:
			return true, nil
		case err != nil && err != bufio.ErrBufferFull:
			return true, fmt.Errorf("cannot read the output of a call: %w", err)
		}
	}
	return false, nil
}

// Finish reads the rest, with a last line that has no newline.
func (t *Tail) Finish() error {
	for all := false; !all; {
		var err error
		if all, err = t.Pump(); err != nil {
			return err
		}
	}
	if len(t.line) > 0 {
		t.flush()
	}
	return nil
}

// add adds a piece of a line, which may contain the line's end.
func (t *Tail) add(piece []byte) {
	t.Read += int64(len(piece))
	text, ended := bytes.CutSuffix(piece, []byte("\n"))
	if room := agent.MaxLine - len(t.line); len(text) > room {
		text, t.cut = text[:room], true
	}
	t.line = append(t.line, text...)
	if ended {
		t.flush()
	}
}

func (t *Tail) flush() {
	t.To(t.line, t.cut)
	t.line, t.cut = t.line[:0], false
	if cap(t.line) > 1<<20 {
		t.line = nil
	}
}

// PollInterval is the interval at which abl reads a running call's output.
const PollInterval = 100 * time.Millisecond

// Clean removes secrets and control characters from the output of an ended call and of its app,
// because users read these files without abl.
func (r Record) Clean(o *redact.Sanitizer) error {
	return errors.Join(CleanOutput(o, r.Dir, "stdout", "stderr"), CleanOutput(o, filepath.Join(r.Dir, "app"), "app.log",
		"events"))
}

// CleanOutput replaces the output files in dir with cleaned ones. A hard link to the old file keeps
// the old content. Missing files are skipped. The caller holds the lock of dir.
func CleanOutput(o *redact.Sanitizer, dir string, names ...string) error {
	if err := hostfs.SweepTemps(dir); err != nil {
		return err
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		f, err := OpenOutput(path)
		if errors.Is(err, hostfs.ErrAbsent) {
			continue
		}
		if err == nil {
			err = o.Keep(f, func(fill func(io.Writer) error) error { return hostfs.Fill(path, OutputMode, fill) })
			f.Close()
		}
		if err != nil {
			return fmt.Errorf("cannot remove secrets from the output in %q: %w", path, err)
		}
	}
	return nil
}
