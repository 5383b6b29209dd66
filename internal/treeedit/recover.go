package treeedit

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"abl/internal/hostfs"
	"abl/internal/testing/failpoint"

	"golang.org/x/sys/unix"
)

// recoverTree undoes what the journal says, if there is one, and removes the
// stage. It can be cut short and called again.
func recoverTree(root, stage string) ([]string, error) {
	full := filepath.Join(root, stage)
	if _, err := os.Lstat(full); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	const most = 1 << 30
	data, err := hostfs.Read(full, journal, most)
	switch {
	case errors.Is(err, hostfs.ErrAbsent): // nothing was changed yet, or all of it
		return nil, hostfs.Remove(root, filepath.ToSlash(stage))
	case err != nil:
		return nil, err
	}
	p := &plan{}
	if err := json.Unmarshal(data, p); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", filepath.Join(stage, journal), err)
	}
	if p.Version != version {
		return nil, fmt.Errorf("%s has version %d, this program knows %d", filepath.Join(stage, journal), p.Version, version)
	}
	if err := p.check(root, stage); err != nil {
		return nil, err
	}
	restored, err := undo(root, stage, p)
	if err != nil {
		return restored, err
	}
	failpoint.Here("treeedit.undone")
	if err := os.Remove(filepath.Join(full, journal)); err != nil {
		return restored, err
	}
	return restored, hostfs.Remove(root, filepath.ToSlash(stage))
}

// check refuses a journal that was not written here. One may have come with the
// tree, from somebody who would like to have files moved and removed.
func (p *plan) check(root, stage string) error {
	d, err := openDirs(root)
	if err != nil {
		return err
	}
	defer d.close()
	at, err := d.get(stage)
	if err != nil {
		return err
	}
	here, err := place(at)
	if err != nil {
		return err
	}
	local := p.Place == here
	for _, s := range p.Steps {
		local = local && filepath.IsLocal(s.Path) && path.Clean(s.Path) == s.Path
	}
	for _, dir := range p.Made {
		local = local && filepath.IsLocal(dir) && path.Clean(dir) == dir
	}
	if !local {
		return fmt.Errorf("%s was not written here: look what is in %s, and remove it", filepath.Join(stage, journal), stage)
	}
	return nil
}

// place tells a directory from every other one, and from a copy of it.
func place(at *os.File) (string, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(at.Fd()), &st); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d:%d", st.Dev, st.Ino), nil
}

// undo goes back through the steps. One that was not made yet left its file
// named new in the stage; what stands at its path is not touched.
func undo(root, stage string, p *plan) (restored []string, err error) {
	d, err := openDirs(root)
	if err != nil {
		return nil, err
	}
	defer d.close()
	at, err := d.take(stage)
	if err != nil {
		return nil, err
	}
	defer at.Close()
	for i := len(p.Steps) - 1; i >= 0; i-- {
		s := p.Steps[i]
		done, err := undoStep(d, at, i, s)
		if err != nil {
			return restored, fmt.Errorf("%q: %w", s.Path, err)
		}
		if done {
			restored = append(restored, s.Path)
		}
		failpoint.Here("treeedit.undo")
	}
	for i := len(p.Made) - 1; i >= 0; i-- {
		os.Remove(filepath.Join(root, p.Made[i])) // one that a person put something into stays
	}
	return restored, nil
}

func undoStep(d dirs, stage *os.File, i int, s step) (done bool, err error) {
	if !s.Delete && exists(stage, newName(i)) {
		return false, nil
	}
	at, err := d.get(path.Dir(s.Path))
	if errors.Is(err, unix.ENOENT) && !s.Was {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	base := path.Base(s.Path)
	switch {
	case !s.Was:
		err = unix.Unlinkat(int(at.Fd()), base, 0)
	case s.Delete && exists(at, base):
		return false, nil
	default:
		err = unix.Renameat(int(stage.Fd()), oldName(i), int(at.Fd()), base)
	}
	if errors.Is(err, unix.ENOENT) { // an earlier undoing did it
		return false, nil
	}
	return err == nil, err
}

func exists(at *os.File, name string) bool {
	var st unix.Stat_t
	return unix.Fstatat(int(at.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil
}
