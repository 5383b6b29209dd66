package gitdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"
)

// mark is the content of a lock that abl holds. Git never reads a lock's
// content, and its own locks hold the new file's bytes.
const mark = "abl holds this lock\n"

const poll = 20 * time.Millisecond

// Lock takes git's lock file for a file of .git, waiting for at most wait
// while another holds it. The lock is held by a flock as well, so that the
// next abl can tell, and clear, a lock whose holder was killed.
func (d Dir) Lock(ctx context.Context, name string, wait time.Duration) (unlock func(), err error) {
	path := d.Join(name) + ".lock"
	ours, err := d.prepareLock()
	if err != nil {
		return nil, fmt.Errorf("cannot lock %q: %w", d.Join(name), err)
	}
	held := false
	defer func() {
		os.Remove(ours.Name())
		if !held {
			ours.Close()
		}
	}()
	for deadline := time.Now().Add(wait); ; {
		// A link appears whole, with its mark and its flock, or not at all.
		err := os.Link(ours.Name(), path)
		switch {
		case err == nil:
			held = true
			return func() { os.Remove(path); ours.Close() }, nil
		case !errors.Is(err, fs.ErrExist):
			return nil, fmt.Errorf("cannot lock %q: %w", d.Join(name), err)
		case clearDead(path):
			continue
		case time.Now().After(deadline):
			return nil, heldBy(path)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(poll):
		}
	}
}

func (d Dir) prepareLock() (*os.File, error) {
	f, err := d.Temp(".", tempPrefix)
	if err != nil {
		return nil, err
	}
	_, err = f.WriteString(mark)
	if err == nil {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err != nil {
		os.Remove(f.Name())
		f.Close()
	}
	return f, err
}

// clearDead removes a lock that an abl made whose process is gone: nobody
// holds its flock any more. It says whether trying again is worth it.
func clearDead(path string) bool {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close()
	head := make([]byte, len(mark))
	if n, _ := f.Read(head); string(head[:n]) != mark {
		return false
	}
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return false
	}
	// Whoever holds the flock of the file at this path may remove it; another
	// file may have come there meanwhile.
	mine, err1 := f.Stat()
	there, err2 := os.Lstat(path)
	if err1 == nil && err2 == nil && os.SameFile(mine, there) {
		os.Remove(path)
	}
	return true
}

func heldBy(path string) error {
	age := "a moment"
	if info, err := os.Lstat(path); err == nil {
		age = time.Since(info.ModTime()).Round(time.Second).String()
	}
	return Foreign("cannot take the lock %q: it is %s old; when no git works on %q any more, remove it",
		path, age, strings.TrimSuffix(path, ".lock"))
}
