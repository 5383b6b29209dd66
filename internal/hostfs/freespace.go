package hostfs

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Left is what is left on a file system for its users.
type Free struct {
	Bytes, Of   int64
	Inodes, All int64 // both 0 where a file system has no fixed number of them
}

// What has to stay: so much, or a twentieth where that is less.
const (
	keepBytes  = 1 << 30
	keepInodes = 50_000
	keepShare  = 20
)

// At asks the file system that path is on.
func FreeSpace(path string) (Free, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return Free{}, fmt.Errorf("cannot tell how much room is left at %q: %w", path, err)
	}
	size := int64(fs.Bsize)
	return Free{int64(fs.Bavail) * size, int64(fs.Blocks) * size, int64(fs.Ffree), int64(fs.Files)}, nil
}

// Short says in words that less is left than has to stay, "" when it is enough.
func (l Free) Short() string {
	if stay := Stay(l.Of); l.Bytes < stay {
		return fmt.Sprintf("%d MiB are left on its disk, and %d MiB have to stay free", l.Bytes>>20, stay>>20)
	}
	if stay := min(keepInodes, l.All/keepShare); l.Inodes < stay {
		return fmt.Sprintf("its disk has room for %d more files, and for %d it has to stay", l.Inodes, stay)
	}
	return ""
}

// Stay is how many bytes have to stay free of so many.
func Stay(of int64) int64 { return min(keepBytes, of/keepShare) }
