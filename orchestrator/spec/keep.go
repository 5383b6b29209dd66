package spec

import (
	"fmt"

	"golang.org/x/sys/unix"

	"abl/internal/hostfs"
)

// Keep is Load that also remembers the ids, in IDFile, so that they stay when
// the specs are edited. The error says that they could not be written: then they
// are right for now, and not kept. Two programs that do this at once wait for
// each other.
func Keep(dir string, begun Begun) (Set, []Problem, error) {
	free := lock(dir)
	defer free()
	s, problems := Load(dir, begun)
	if len(s.specs) == 0 || !s.sound {
		return s, problems, nil
	}
	data := s.book.render()
	if string(data) == s.stored {
		return s, problems, nil
	}
	if err := hostfs.Write(s.path(IDFile), data, 0o644); err != nil {
		return s, problems, fmt.Errorf("cannot keep the ids of the contracts: %w", err)
	}
	return s, problems, nil
}

// lock holds the directory itself, so that nothing is left behind. Where a file
// system has no locks, as over some networks, there is none.
func lock(dir string) (free func()) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return func() {}
	}
	_ = unix.Flock(fd, unix.LOCK_EX)
	return func() { unix.Close(fd) }
}
