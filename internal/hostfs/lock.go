package hostfs

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/sys/unix"
)

// ErrHeld means that another process holds the lock; the error that wraps it
// says which one, as far as the lock file tells.
var ErrHeld = errors.New("is held")

// holder is what the lock file says of whoever holds it. It is left behind when
// the lock is given back, so it counts only while the lock is held.
type holder struct {
	PID   int       `json:"pid"`
	Host  string    `json:"host"`
	Since time.Time `json:"since"`
}

// ErrLost means that the file of a lock was taken away or replaced under its
// holder, so that another process may hold the lock as well.
var ErrLost = errors.New("was taken away or replaced while it was held, so another may be at work here")

// Held is a lock that this process has taken.
type Held struct {
	file *flock.Flock
	path string
}

// Lock takes the lock whose file is at path for whoever needs no look at it later.
func Lock(path string) (unlock func() error, err error) {
	h, err := Hold(path)
	if err != nil {
		return nil, err
	}
	return h.Unlock, nil
}

// Hold takes the lock whose file is at path, and makes the file where there is
// none. It does not wait for another holder: the error is an ErrHeld where another has it. The file
// is never deleted, since whoever opened it before would go on to hold the lock
// of a file that nobody else finds.
func Hold(path string) (*Held, error) {
	// The flag keeps agents and engines that abl starts from inheriting the lock.
	const flag = os.O_RDWR | os.O_CREATE | unix.O_CLOEXEC | unix.O_NOFOLLOW | unix.O_NONBLOCK
	h := &Held{flock.New(path, flock.SetFlag(flag), flock.SetPermissions(0o644)), path}
	ok, err := h.file.TryLock()
	for err == nil && !ok && !Locked(path) { // it was a Locked, which is over in no time
		ok, err = h.file.TryLock()
	}
	if err == nil && !ok {
		err = heldBy(path)
	} else if err == nil {
		if err = h.claim(); err != nil {
			err = errors.Join(err, h.Unlock())
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot lock %q: %w", path, err)
	}
	return h, nil
}

// claim writes who holds the lock, after making sure that the path still leads
// to the file that was locked: another might have put a new one there.
func (h *Held) claim() error {
	if err := h.Still(); err != nil {
		return err
	}
	host, _ := os.Hostname() // for the eyes of a person alone
	data, err := json.Marshal(holder{os.Getpid(), host, time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return err
	}
	return os.WriteFile(h.path, append(data, '\n'), 0o644)
}

// Unlock gives the lock back.
func (h *Held) Unlock() error { return h.file.Unlock() }

// Still is an ErrLost when the path no longer leads to the file that is locked.
func (h *Held) Still() error {
	locked, err := h.file.Stat()
	if err != nil {
		return fmt.Errorf("cannot look at the lock %q: %w", h.path, err)
	}
	if !locked.Mode().IsRegular() {
		return errors.New("it is not a regular file")
	}
	if now, err := os.Lstat(h.path); err != nil || !os.SameFile(locked, now) {
		return fmt.Errorf("the lock %q %w", h.path, ErrLost)
	}
	return nil
}

// Locked reports whether a process holds the lock, this one included. It asks the kernel, for a
// moment, and not the file, whose process id may be another program's by now. A lock that cannot be
// asked counts as held.
func Locked(path string) bool {
	f, err := Open(filepath.Dir(path), filepath.Base(path))
	if err != nil {
		return !errors.Is(err, ErrAbsent)
	}
	defer f.Close() // which frees the lock
	return unix.Flock(fd(f), unix.LOCK_SH|unix.LOCK_NB) != nil
}

// lastHolder reads who took the lock last. The file may be empty still, or torn.
func lastHolder(path string) (h holder, err error) {
	const longest = 4 << 10
	data, err := Read(filepath.Dir(path), filepath.Base(path), longest)
	if err == nil {
		err = json.Unmarshal(data, &h)
	}
	if err == nil && h.PID <= 0 {
		err = errors.New("it names no process")
	}
	return h, err
}

// Holder returns the process and the machine that took the lock last. It fails if the file does not
// name them.
func Holder(path string) (pid int, host string, err error) {
	h, err := lastHolder(path)
	if err != nil {
		return 0, "", fmt.Errorf("cannot read %q: %w", path, err)
	}
	return h.PID, h.Host, nil
}

// heldBy words who holds the lock.
func heldBy(path string) error {
	h, err := lastHolder(path)
	if err != nil {
		return fmt.Errorf("it %w by another process", ErrHeld)
	}
	return fmt.Errorf("it %w by process %d on %q since %s", ErrHeld, h.PID, h.Host, h.Since.Format(time.RFC3339))
}
