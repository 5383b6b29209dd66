package digest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"abl/orchestrator/workspace/scan"

	"golang.org/x/sys/unix"
)

// openDir is an open folder.
type openDir int

func (d openDir) Close() { unix.Close(int(d)) }

// openBelow opens a folder by its path below root, following no link.
func openBelow(root, path string) (openDir, error) {
	const how = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	at, err := unix.Open(root, how, 0)
	for step := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '/' }) {
		if err != nil {
			break
		}
		var next int
		next, err = unix.Openat(at, step, how, 0)
		unix.Close(at)
		at = next
	}
	if err != nil {
		return -1, fmt.Errorf("its folder cannot be opened: %w", err)
	}
	return openDir(at), nil
}

var errChanged = errors.New("it changed meanwhile")

// sum is the digest of the very file that was looked at. It clears capabilities
// of the file's own and says so.
func (d openDir) sum(is *scan.IgnoredFile) (digest, cleared string, err error) {
	if is.Mode&unix.S_IFMT == unix.S_IFLNK {
		target := make([]byte, unix.PathMax)
		n, err := unix.Readlinkat(int(d), is.Name, target)
		if err != nil {
			return "", "", err
		}
		sum := sha256.Sum256(target[:n])
		return hex.EncodeToString(sum[:]), "", nil
	}
	fd, err := unix.Openat(int(d), is.Name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", "", err
	}
	defer unix.Close(fd)
	var now unix.Stat_t
	if err := unix.Fstat(fd, &now); err != nil {
		return "", "", err
	}
	if uint32(now.Ino) != is.Stat.Ino || uint32(now.Mode) != is.Mode || now.Size != is.Size {
		return "", "", errChanged
	}
	cleared = scan.Disarm(fd)
	if is.Size > maxFile {
		return "", cleared, errors.New(tooLarge)
	}
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(reader(fd), is.Size+1))
	if err == nil && n != is.Size {
		err = errChanged
	}
	return hex.EncodeToString(h.Sum(nil)), cleared, err
}

// reader reads a descriptor. An os.File would ask the poller about each.
type reader int

func (r reader) Read(b []byte) (int, error) {
	for {
		n, err := unix.Read(int(r), b)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}
