package commit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"abl/cmd/internal/exit"
	"abl/internal/hostfs"
	"abl/orchestrator/codecommit"
)

// lockFile is what says that somebody works here.
func (s *session) lockFile() string {
	dir := codecommit.ConfigDir
	if s.profile.Name == codecommit.V1 {
		dir = "logs"
	}
	return filepath.Join(s.root, dir, ".lock")
}

// lock keeps others from working here, puts back what a run that was killed has
// left by half, and removes what else it left in the project.
func (s *session) lock() (unlock func() error, err error) {
	file := s.lockFile()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return nil, err
	}
	if unlock, err = hostfs.Lock(file); err != nil {
		if errors.Is(err, hostfs.ErrHeld) {
			return nil, exit.With(exit.Busy, fmt.Errorf("another code-commit works on this project: %w", err), "wait until it has ended")
		}
		return nil, err
	}
	restored, err := codecommit.Recover(s.root)
	if err != nil {
		return nil, errors.Join(exit.With(exit.Person, err, "look at git status; what the edits replaced is in the folder that is named"), unlock())
	}
	if len(restored) > 0 {
		s.in.Warn("an earlier run was killed while it changed files; they are as they were before: " + strings.Join(restored, ", "))
	}
	if err := errors.Join(hostfs.SweepTemps(filepath.Dir(file)), os.RemoveAll(s.handed().Root)); err != nil {
		return nil, errors.Join(err, unlock())
	}
	return unlock, nil
}
