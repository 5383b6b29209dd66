package hostfs

import (
	"fmt"

	"golang.org/x/sys/unix"
)

const (
	special  = unix.S_ISUID | unix.S_ISGID
	maxShown = 50
)

// findings are what a role left that no role needs.
type findings struct {
	shown []string
	more  int
}

func (f *findings) add(e Entry, what string) {
	if len(f.shown) == maxShown {
		f.more++
		return
	}
	f.shown = append(f.shown, fmt.Sprintf("%q %s", e.Path(), what))
}

func (f *findings) list() []string {
	if f.more == 0 {
		return f.shown
	}
	return append(f.shown, fmt.Sprintf("and %d more", f.more))
}

// inspect reports and disarms one Entry.
func (f *findings) inspect(e Entry) error {
	switch e.Kind() {
	case unix.S_IFREG, unix.S_IFDIR:
		if uint32(e.Stat.Mode)&special == 0 {
			return nil
		}
		f.add(e, "had a setuid or setgid bit, which was cleared")
		return e.disarm()
	case unix.S_IFIFO:
		f.add(e, "is a FIFO")
	case unix.S_IFSOCK:
		f.add(e, "is a socket")
	case unix.S_IFCHR, unix.S_IFBLK:
		f.add(e, "is a device")
	}
	return nil
}
