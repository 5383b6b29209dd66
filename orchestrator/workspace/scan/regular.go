package scan

import (
	"bytes"
	"errors"
	"io"

	"golang.org/x/sys/unix"
)

// regular is an open regular file. An os.File would ask the poller about each.
type regular int

func (f regular) Close() error { return unix.Close(int(f)) }

func (f regular) Read(b []byte) (int, error) {
	for {
		n, err := unix.Read(int(f), b)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, err
		case n == 0 && len(b) > 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

func readExactly(f regular, size int64) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(int(size) + bytes.MinRead)
	if n, err := b.ReadFrom(io.LimitReader(f, size+1)); err != nil || n != size {
		return nil, errors.Join(err, errChanging)
	}
	return b.Bytes(), nil
}

func readLink(fd int, name string) ([]byte, error) {
	b := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, name, b)
	if err != nil {
		return nil, err
	}
	return b[:n], nil
}
