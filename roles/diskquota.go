package roles

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"abl/internal/hostfs"
	"abl/internal/proc"
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

// measureFirst measures a call's workspace before the agent starts, and keeps that with the call.
func (r *Runner) measureFirst(ctx context.Context, j Job, rec Record) error {
	if !r.Quota.bounded() {
		return nil
	}
	was, err := measure(ctx, j.Role.Workspace(r.Project))
	if err == nil {
		err = rec.Write(treeFile, was)
	}
	if err != nil {
		return fmt.Errorf("cannot measure the %s's workspace: %w", j.Role.Name, err)
	}
	return nil
}

// measure measures a workspace.
func measure(ctx context.Context, dir string) (base, error) {
	size, err := hostfs.Measure(ctx, dir, time.Time{}, func(hostfs.Size) bool { return false })
	return base{size.Bytes, size.Names, size.Depth}, err
}

// outgrown tells why a call has to end, once it has to.
func (r *Runner) outgrown(ctx context.Context, j Job, rec Record, since time.Time) <-chan string {
	dir, why := j.Role.Workspace(r.Project), make(chan string, 1)
	if !r.Quota.bounded() {
		return why
	}
	was, known, err := Read[base](rec, treeFile)
	if err != nil || !known { // it was lost with the power: what is there now is what there was
		was, _ = measure(ctx, dir) // a folder that cannot be opened cannot grow
	}
	go func() {
		look := func() string { return r.Quota.look(ctx, dir, was, since) }
		if text := r.Quota.outgrown(ctx, look); text != "" {
			why <- text
		}
	}()
	return why
}

// outgrown looks again and again, until a look returns what is too much or ctx ends.
func (q DiskQuota) outgrown(ctx context.Context, look func() string) string {
	every := cmp.Or(q.Every, time.Second)
	for pause := every; q.bounded() && proc.Pause(ctx, pause) == nil; {
		begun := time.Now()
		if why := look(); why != "" {
			return why
		}
		const share = 20 // at most a twentieth of the time is spent looking
		pause = max(every, share*time.Since(begun))
	}
	return ""
}

// look measures once, and says what is too much. What cannot be measured is not.
func (q DiskQuota) look(ctx context.Context, dir string, was base, since time.Time) string {
	if why := q.short(); why != "" {
		return why
	}
	size, err := hostfs.Measure(ctx, dir, since, func(s hostfs.Size) bool { return q.exceeds(s, was) != "" })
	if err != nil {
		return ""
	}
	return q.exceeds(size, was)
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

// spill is what a box can write besides a workspace.
type spill struct {
	volume string           // of the engine's, "" for none
	was    int64            // bytes in it before
	files  map[string]int64 // of abl's, and how many bytes each may have; 0 for any number
}

// overflow returns why a box has to end, once it has to or ctx ends. full means that a disk has
// too little room while the box keeps its own bounds: a fault of the machine, which may have
// another cause.
func (s *Boxes) overflow(ctx context.Context, w spill) (why string, full bool) {
	why = s.Disk.outgrown(ctx, func() string {
		own := s.spilled(ctx, w)
		if full = own == ""; full {
			return s.Disk.short()
		}
		return own
	})
	return why, full && why != ""
}

// spilled looks once at what a box has written, and returns what is too much. It passes over
// what cannot be measured.
func (s *Boxes) spilled(ctx context.Context, w spill) string {
	for path, most := range w.files {
		if fi, err := os.Lstat(path); err == nil && most > 0 && fi.Size() > most {
			return fmt.Sprintf("%s has more than %d bytes", filepath.Base(path), most)
		}
	}
	if w.volume == "" || s.Disk.Bytes == 0 {
		return ""
	}
	if now, err := s.Engine.Usage(ctx, w.volume); err == nil && now-w.was > s.Disk.Bytes {
		return fmt.Sprintf("it wrote %d MiB into its copy (limits.disk is %d MiB)", (now-w.was)>>20, s.Disk.Bytes>>20)
	}
	return ""
}
