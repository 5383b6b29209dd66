package hostfs

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// regular refuses what is not a file of at most max bytes.
func regular(st unix.Stat_t, max int64) error {
	if uint32(st.Mode)&unix.S_IFMT != unix.S_IFREG {
		return fmt.Errorf("%w but %s", ErrNotRegular, kindOf(st))
	}
	if st.Size > max {
		return tooLarge(max)
	}
	return nil
}

func tooLarge(max int64) error {
	return fmt.Errorf("%w (more than %d bytes)", ErrTooLarge, max)
}

// notRegular words the refusal of a link, or of what stands where a directory
// should.
func notRegular(at *os.File, name string) error {
	if at == nil {
		return fmt.Errorf("its directory %w", errDirectory)
	}
	st, err := lstat(at, name)
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: it is %s", errDirectory, kindOf(st))
}

// errDirectory is an ErrNotRegular about a place on the way.
var errDirectory = fmt.Errorf("is not a real directory, so the file %w", ErrNotRegular)

func kindOf(st unix.Stat_t) string {
	switch uint32(st.Mode) & unix.S_IFMT {
	case unix.S_IFREG:
		return "a file"
	case unix.S_IFDIR:
		return "a directory"
	case unix.S_IFLNK:
		return "a link"
	case unix.S_IFIFO:
		return "a FIFO"
	case unix.S_IFSOCK:
		return "a socket"
	}
	return "a device"
}

// Text makes text of what an agent wrote: invalid UTF-8 becomes U+FFFD, and NUL,
// which cuts strings short elsewhere, is dropped.
func Text(data []byte) string {
	return strings.ReplaceAll(strings.ToValidUTF8(string(data), "\uFFFD"), "\x00", "")
}
