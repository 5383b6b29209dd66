package scan

import (
	"context"
	"errors"
	"fmt"

	"abl/internal/hostfs"
	"abl/orchestrator/sweep"

	"golang.org/x/sys/unix"
)

// special are the bits that make a program run as its owner or group.
const special = unix.S_ISUID | unix.S_ISGID

// capability is the attribute in which a file's capabilities stand.
const capability = "security.capability"

// clear takes away what no role needs, and says whether the name has gone with
// it. A folder keeps its setgid bit: it hands the group on, and no right.
func (w *walker) clear(fd int, path string, e *name) (gone bool) {
	switch rights := e.rights(); {
	case !w.Sweep:
	case rights != 0:
		// Below a folder that nobody else can write there is nothing to be exchanged.
		if err := unix.Fchmodat(fd, e.plain(), uint32(e.stat.Mode)&0o7777|rights, 0); err != nil {
			w.found(path, fmt.Sprintf("shut to its owner, and cannot be opened: %v", err), false)
			return false
		}
		w.found(path, "shut to its owner, opened", false)
		e.stat.Mode |= rights
		return w.clear(fd, path, e)
	case e.special():
		if err := unix.Unlinkat(fd, e.key, 0); err != nil && !errors.Is(err, unix.ENOENT) {
			w.found(path, fmt.Sprintf("%s, which cannot be removed: %v", e.kind(), err), true)
			return false
		}
		w.found(path, e.kind()+", removed", false)
		return true
	case e.regular() && e.stat.Mode&special != 0:
		if err := dropBits(fd, e); err != nil {
			w.found(path, fmt.Sprintf("a setuid or setgid bit, which cannot be cleared: %v", err), true)
		} else {
			w.found(path, "a setuid or setgid bit, cleared", true)
		}
	}
	return false
}

// deep clears what lies too deep to be listed: it may be nested beyond the number
// of descriptors.
func (w *walker) deep(ctx context.Context, fd int, e *name, path string) error {
	return hostfs.WalkAt(fd, e.plain(), func(in hostfs.Entry) error {
		if err := w.count(ctx, 1); err != nil {
			return err
		}
		n := name{key: in.Name, stat: in.Stat}
		below := path + "/…/" + in.Name
		if w.clear(in.Dir, below, &n) || !n.regular() {
			return nil
		}
		if f, err := openRegular(in.Dir, &n); err == nil { // else nobody can run it either
			if what := Disarm(int(f)); what != "" {
				w.found(below, what, true)
			}
			return f.Close()
		}
		return nil
	})
}

// rights are those that its owner is given back who cannot even read it, 0 for none.
func (e *name) rights() uint32 {
	switch mode := uint32(e.stat.Mode); {
	case e.dir() && mode&0o500 != 0o500:
		return 0o700
	case e.regular() && mode&0o400 == 0:
		return 0o600
	}
	return 0
}

func (w *walker) found(path, what string, runs bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.clears.room(runs) {
		w.cleared = append(w.cleared, sweep.Thing{Path: path, What: what, Runs: runs})
	}
}

// dropBits clears the bits of the very file that was looked at, and looks again.
func dropBits(fd int, e *name) error {
	f, err := openRegular(fd, e)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Fchmod(int(f), uint32(e.stat.Mode)&0o7777&^special); err != nil {
		return err
	}
	return unix.Fstat(int(f), &e.stat)
}

// disarm takes away the capabilities of a file that has changed since it was
// seen last; giving a file any changes the time by which that is told.
func (c *content) disarm(f regular) {
	what := Disarm(int(f))
	if what == "" {
		return
	}
	c.w.found(c.entry.Path, what, true)
	if unix.Fstat(int(f), &c.e.stat) == nil {
		c.entry.Stat = statOf(&c.e.stat)
	}
}

// Disarm takes away the capabilities of an open file and says so, "" when it has
// none.
func Disarm(fd int) string {
	n, err := unix.Fgetxattr(fd, capability, nil)
	if err != nil || n == 0 {
		return ""
	}
	if err := unix.Fremovexattr(fd, capability); err != nil {
		return fmt.Sprintf("capabilities of its own, which cannot be cleared: %v", err)
	}
	return "capabilities of its own, cleared"
}
