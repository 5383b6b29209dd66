package roles

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"abl/internal/hostfs"
	"abl/internal/proc"
)

// ErrNoRoom means that a disk is too full to begin a call.
var ErrNoRoom = errors.New("not enough disk space")

// DiskQuota limits the growth of a workspace, and keeps free space on the disks that a call can
// fill.
type DiskQuota struct {
	Bytes  int64         // limits.disk, 0 for no limit
	Inodes int64         // limits.inodes, 0 for no limit
	Disks  []string      // a path on each file system that must keep free space
	Every  time.Duration // time between checks, 0 is one second
}

// TreeSize is the size of a workspace before a call.
type TreeSize struct {
	Bytes int64 `json:"bytes"`
	Names int64 `json:"names"`
	Depth int   `json:"depth"`
}

func (q DiskQuota) Limited() bool { return q.Bytes > 0 || q.Inodes > 0 || len(q.Disks) > 0 }

// CheckRoom returns an ErrNoRoom if a disk is too full to begin a call.
func (q DiskQuota) CheckRoom() error {
	if why := q.FullDisk(); why != "" {
		return fmt.Errorf("%w: %s", ErrNoRoom, why)
	}
	return nil
}

// FullDisk returns which disk has too little free space, "" if all have enough. It ignores a file
// system that it cannot query, which may be on the engine's machine.
func (q DiskQuota) FullDisk() string {
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

// MeasureTree returns the size of a workspace.
func MeasureTree(ctx context.Context, dir string) (TreeSize, error) {
	size, err := hostfs.Measure(ctx, dir, time.Time{}, func(hostfs.Size) bool { return false })
	return TreeSize{size.Bytes, size.Names, size.Depth}, err
}

// Watch calls look repeatedly until it returns a reason or ctx ends.
func (q DiskQuota) Watch(ctx context.Context, look func() string) string {
	every := cmp.Or(q.Every, time.Second)
	for pause := every; q.Limited() && proc.Pause(ctx, pause) == nil; {
		begun := time.Now()
		if why := look(); why != "" {
			return why
		}
		const share = 20 // looks take at most a twentieth of the time
		pause = max(every, share*time.Since(begun))
	}
	return ""
}

// Exceeded returns which disk has too little free space, or how a workspace exceeds its quota.
func (q DiskQuota) Exceeded(ctx context.Context, dir string, was TreeSize, since time.Time) string {
	return cmp.Or(q.FullDisk(), q.Grown(ctx, dir, was, since))
}

// Grown returns how a workspace exceeds its quota, "" if it does not or cannot be measured.
func (q DiskQuota) Grown(ctx context.Context, dir string, was TreeSize, since time.Time) string {
	size, err := hostfs.Measure(ctx, dir, since, func(s hostfs.Size) bool { return q.exceeds(s, was) != "" })
	if err != nil {
		return ""
	}
	return q.exceeds(size, was)
}

// exceeds returns which limit is exceeded, with the largest file or folder.
func (q DiskQuota) exceeds(s hostfs.Size, was TreeSize) string {
	switch {
	case q.Bytes > 0 && s.Bytes-was.Bytes > q.Bytes:
		return fmt.Sprintf("its workspace grew by %d MiB (limits.disk is %d MiB): the largest new file is %.200q with %d MiB",
			(s.Bytes-was.Bytes)>>20, q.Bytes>>20, s.File.Path, s.File.Bytes>>20)
	case q.Inodes > 0 && s.Names-was.Names > q.Inodes:
		return fmt.Sprintf("its workspace grew by %d files and folders (limits.inodes is %d): "+
			"the most new ones are in %.200q, %d",
			s.Names-was.Names, q.Inodes, "./"+s.Widest.Path, s.Widest.Names)
	case s.Depth >= hostfs.MaxDepth && was.Depth < hostfs.MaxDepth:
		return fmt.Sprintf("folders in its workspace are nested deeper than %d", hostfs.MaxDepth)
	}
	return ""
}
