package roles

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"abl/internal/hostfs"
)

// ErrNoRoom means that a disk is too full for a call to begin.
var ErrNoRoom = errors.New("there is not enough room on the disk")

// DiskQuota bounds what a call may add to its workspace, and keeps room on the
// disks that it can fill.
type DiskQuota struct {
	Bytes  int64         // limits.disk, 0 for no bound
	Inodes int64         // limits.inodes, 0 for no bound
	Disks  []string      // a path on each file system on which room has to stay
	Every  time.Duration // how often it is looked, 0 is every second
}

// treeFile keeps in a call's record what its workspace measured before it.
const treeFile = "tree.json"

// base is what a workspace measured before a call.
type base struct {
	Bytes int64 `json:"bytes"`
	Names int64 `json:"names"`
	Depth int   `json:"depth"`
}

func (q DiskQuota) bounded() bool { return q.Bytes > 0 || q.Inodes > 0 || len(q.Disks) > 0 }

// hasRoom refuses to begin a call on a disk that is too full.
func (q DiskQuota) hasRoom() error {
	if why := q.short(); why != "" {
		return fmt.Errorf("%w: %s", ErrNoRoom, why)
	}
	return nil
}

// short says where too little room is left, "" when there is enough. A file
// system that cannot be asked is passed over: the engine's may be another's.
func (q DiskQuota) short() string {
	for _, path := range q.Disks {
		left, err := hostfs.FreeSpace(path)
		if err != nil {
			continue
		}
		if why := left.Short(); why != "" {
			return fmt.Sprintf("of %q, %s", path, why)
		}
	}
	return ""
}

// measureFirst measures the workspace while its call's box is made, and keeps
// that with the call. wait returns when it is done, before the agent starts.
func (r *Runner) measureFirst(ctx context.Context, j Job, rec Record) (wait func() error) {
	if !r.Quota.bounded() {
		return func() error { return nil }
	}
	done := make(chan error, 1)
	go func() {
		was, err := measure(ctx, j.Role.Workspace(r.Project))
		if err == nil {
			err = rec.Note(treeFile, was)
		}
		done <- err
	}()
	return func() error {
		if err := <-done; err != nil {
			return fmt.Errorf("cannot measure the %s's workspace: %w", j.Role.Name, err)
		}
		return nil
	}
}

// measure measures a workspace.
func measure(ctx context.Context, dir string) (base, error) {
	size, err := hostfs.Measure(ctx, dir, time.Time{}, func(hostfs.Size) bool { return false })
	return base{size.Bytes, size.Names, size.Depth}, err
}

// outgrown looks at the workspace and the disks again and again while a call
// runs, and says once why the call has to end. before gives what it measured first.
func (q DiskQuota) outgrown(ctx context.Context, dir string, before func() (base, bool, error), since time.Time) <-chan string {
	why := make(chan string, 1)
	if !q.bounded() {
		return why
	}
	go func() {
		was, known, err := before()
		for pause := cmp.Or(q.Every, time.Second); err == nil; {
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
			begun := time.Now()
			size, text := q.look(ctx, dir, since, was, known)
			if text != "" {
				why <- text
				return
			}
			if !known { // the record was lost: what is there now is what there was
				was, known = base{size.Bytes, size.Names, size.Depth}, true
			}
			const share = 20 // at most a twentieth of the time is spent looking
			pause = max(cmp.Or(q.Every, time.Second), share*time.Since(begun))
		}
		why <- "what its workspace measured before it cannot be read"
	}()
	return why
}

// look measures once, and says what is too much.
func (q DiskQuota) look(ctx context.Context, dir string, since time.Time, was base, known bool) (hostfs.Size, string) {
	if why := q.short(); why != "" {
		return hostfs.Size{}, why
	}
	size, err := hostfs.Measure(ctx, dir, since, func(s hostfs.Size) bool { return known && q.exceeds(s, was) != "" })
	if err != nil || !known {
		return size, "" // stopped, or the folder cannot be opened, in which nothing can grow then
	}
	return size, q.exceeds(size, was)
}

// exceeds says what grew too much, and names the offender.
func (q DiskQuota) exceeds(s hostfs.Size, was base) string {
	switch {
	case q.Bytes > 0 && s.Bytes-was.Bytes > q.Bytes:
		return fmt.Sprintf("its workspace grew by %d MiB (limits.disk is %d MiB): the largest new file is %.200q with %d MiB",
			(s.Bytes-was.Bytes)>>20, q.Bytes>>20, s.File.Path, s.File.Bytes>>20)
	case q.Inodes > 0 && s.Names-was.Names > q.Inodes:
		return fmt.Sprintf("its workspace grew by %d files and folders (limits.inodes is %d): the most new ones are in %.200q, %d",
			s.Names-was.Names, q.Inodes, "./"+s.Widest.Path, s.Widest.Names)
	case s.Depth >= hostfs.MaxDepth && was.Depth < hostfs.MaxDepth:
		return fmt.Sprintf("folders in its workspace are nested deeper than %d", hostfs.MaxDepth)
	}
	return ""
}
