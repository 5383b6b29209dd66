package roles

import (
	"fmt"
	"io"
	"os"

	"abl/roles/agent"

	"golang.org/x/sys/unix"
)

// openOutput opens a file that the role writes: a regular one, never through a link, never blocking.
func openOutput(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot read the output of a call: %w", err)
	}
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		f.Close()
		return nil, fmt.Errorf("cannot read the output of a call: %q is not a regular file", path)
	}
	return f, nil
}

func size(f *os.File) int64 {
	fi, err := f.Stat()
	if err != nil {
		return 0
	}
	return fi.Size()
}

// tail hands out the lines of a growing file, each at most agent.MaxLine long.
type tail struct {
	in   io.Reader
	to   func(line []byte, cut bool)
	read int64
	line []byte
	cut  bool
	buf  [64 << 10]byte
}

// pump reads what has been written since the last time.
func (t *tail) pump() error {
	for {
		n, err := t.in.Read(t.buf[:])
		t.read += int64(n)
		t.feed(t.buf[:n])
		if err == io.EOF || err == nil && n == 0 {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot read the output of a call: %w", err)
		}
	}
}

// finish reads the rest; a last line needs no newline.
func (t *tail) finish() error {
	if err := t.pump(); err != nil {
		return err
	}
	if len(t.line) > 0 {
		t.flush()
	}
	return nil
}

func (t *tail) feed(data []byte) {
	for _, part := range splitAfterLines(data) {
		text, whole := trimNewline(part)
		if room := agent.MaxLine - len(t.line); len(text) > room {
			text, t.cut = text[:room], true
		}
		t.line = append(t.line, text...)
		if whole {
			t.flush()
		}
	}
}

func (t *tail) flush() {
	t.to(t.line, t.cut)
	t.line, t.cut = t.line[:0], false
	if cap(t.line) > 1<<20 {
		t.line = nil
	}
}
