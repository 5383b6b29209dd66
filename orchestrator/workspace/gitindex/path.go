package gitindex

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// readPath reads the path that follows the first used bytes of an entry.
func (d *decoder) readPath(e *Entry, used int) error {
	shared := 0
	if d.version == 4 {
		strip, n := offsetVarint(d.rest[used:])
		if n == 0 || strip > len(d.path) {
			return errors.New("an entry's shared beginning is wrong")
		}
		used += n
		shared = len(d.path) - strip
	}
	end := bytes.IndexByte(d.rest[used:], 0)
	if end < 0 {
		return errors.New("a path does not end")
	}
	d.path = append(d.path[:shared], d.rest[used:used+end]...)
	e.Path = string(d.path)
	used += end + 1
	if d.version < 4 {
		used = (used + 7) &^ 7 // one to eight NULs follow
	}
	if used > len(d.rest) {
		return errors.New("a path's padding is cut short")
	}
	d.rest = d.rest[used:]
	return checkPath(e.Path)
}

// checkPath refuses what could not be a path below the work tree.
func checkPath(path string) error {
	for part := range strings.SplitSeq(path, "/") {
		if part == "" || part == "." || part == ".." {
			return fmt.Errorf("%q is not a path in a work tree", path)
		}
	}
	return nil
}

// offsetVarint reads git's offset encoding and how many bytes it took, 0 when
// it is broken.
func offsetVarint(b []byte) (value, n int) {
	for i, c := range b {
		if i > 0 {
			value++
		}
		value = value<<7 | int(c&0x7f)
		if value > 1<<24 {
			return 0, 0
		}
		if c&0x80 == 0 {
			return value, i + 1
		}
	}
	return 0, 0
}
