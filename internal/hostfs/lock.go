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

// ErrHeld means that another process holds the lock. The wrapping error names the process if the
// lock file does.
var ErrHeld = errors.New("is held")

// Holder is the process that took a lock last. The lock file contains it also after Unlock, so it is
// valid only while the lock is held.
type Holder struct {
	PID   int       `json:"pid"`
	Host  string    `json:"host"`
	Since time.Time `json:"since"`
}

// ErrLost means that the file of a held lock was removed or replaced, so that another process may
// hold the lock, too.
var ErrLost = errors.New("was removed or replaced, so another process may use this project")

// Held is a lock that this process holds.
type Held struct {
	file *flock.Flock
	path string
}

// Lock takes the lock whose file is at path. Use Hold to check the lock later.
func Lock(path string) (unlock func() error, err error) {
	h, err := Hold(path)
	if err != nil {
		return nil, err
	}
	return h.Unlock, nil
}

// Hold takes the lock whose file is at path. It creates the file if necessary and never deletes it:
// a process that opened a deleted file could lock it without anyone noticing. Hold does not wait.
// It returns ErrHeld if another process holds the lock.
func Hold(path string) (*Held, error) {
	// The flag keeps agents and engines that abl starts from inheriting the lock.
	const flag = os.O_RDWR | os.O_CREATE | unix.O_CLOEXEC | unix.O_NOFOLLOW | unix.O_NONBLOCK
	h := &Held{flock.New(path, flock.SetFlag(flag), flock.SetPermissions(0o644)), path}
	ok, err := h.file.TryLock()
	for err == nil && !ok && !Locked(path) { // a call of Locked held it for a moment
		ok, err = h.file.TryLock()
	}
	if err == nil && !ok {
		err = heldBy(path)
	} else if err == nil {
		if err = h.writeHolder(); err != nil {
			err = errors.Join(err, h.Unlock())
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot lock %q: %w", path, err)
	}
	return h, nil
}

// writeHolder checks that the path still leads to the locked file, which another process may have
// replaced, and writes this process to it.
func (h *Held) writeHolder() error {
	if err := h.Verify(); err != nil {
		return err
	}
	host, _ := os.Hostname() // only displayed
	data, err := json.Marshal(Holder{os.Getpid(), host, time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return err
	}
	return os.WriteFile(h.path, append(data, '\n'), 0o644)
}

// Unlock releases the lock.
func (h *Held) Unlock() error { return h.file.Unlock() }

// Verify returns ErrLost if the path no longer leads to the locked file.
func (h *Held) Verify() error {
	locked, err := h.file.Stat()
	if err != nil {
		return fmt.Errorf("cannot stat the lock %q: %w", h.path, err)
	}
	if !locked.Mode().IsRegular() {
		return errors.New("it is not a regular file")
	}
	if now, err := os.Lstat(h.path); err != nil || !os.SameFile(locked, now) {
		return fmt.Errorf("the lock %q %w", h.path, ErrLost)
	}
	return nil
}

// Locked reports whether any process, including this one, holds the lock. It asks the kernel,
// because the process id in the file may belong to another program by now. If it cannot ask, it
// returns true.
func Locked(path string) bool {
	f, err := Open(filepath.Dir(path), filepath.Base(path))
	if err != nil {
		return !errors.Is(err, ErrAbsent)
	}
	defer f.Close() // releases the lock
	return unix.Flock(fd(f), unix.LOCK_SH|unix.LOCK_NB) != nil
}

// LastHolder reads the process that took the lock last. It fails if the file is still empty or
// incomplete.
func LastHolder(path string) (h Holder, err error) {
	defer wrapError(&err, "read", path)
	const longest = 4 << 10
	data, err := Read(filepath.Dir(path), filepath.Base(path), longest)
	if err == nil {
		err = json.Unmarshal(data, &h)
	}
	if err == nil && h.PID <= 0 {
		err = errors.New("it has no process id")
	}
	return h, err
}

// heldBy returns an ErrHeld with the holder.
func heldBy(path string) error {
	h, err := LastHolder(path)
	if err != nil {
		return fmt.Errorf("it %w by another process", ErrHeld)
	}
	return fmt.Errorf("it %w by process %d on %q since %s", ErrHeld, h.PID, h.Host, h.Since.Format(time.RFC3339))
}
