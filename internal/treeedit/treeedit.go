// Package treeedit changes several files below a directory, all of them or
// none: a failure on the way puts back what was there, and after a kill Recover
// does. Nothing on the way to a file may be a link, and none is followed.
package treeedit

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"

	"abl/internal/hostfs"
	"abl/internal/testing/failpoint"

	"golang.org/x/sys/unix"
)

// ErrInTheWay means that the tree is not, or no longer, as the edits need it: what
// stands at a path, or on the way to it, is something else.
var ErrInTheWay = errors.New("somebody else has changed it meanwhile")

// Edit is one file's new content, or its removal.
type Edit struct {
	Path    string // below the directory, clean, with slashes
	Content string
	Delete  bool
}

// Apply makes the edits. Until it is done the stage, a directory below root
// that must not exist yet, holds what is needed to undo them; it is to be on
// the same file system as all that is edited. The caller holds a lock, and has
// called Recover with the same stage before.
func Apply(root, stage string, edits []Edit) error {
	t, err := open(root, stage)
	if err != nil {
		return fmt.Errorf("cannot change files: %w", err)
	}
	defer t.close()
	plan, err := t.prepare(edits)
	if err == nil {
		err = t.perform(plan)
	}
	if err != nil {
		_, undone := recoverTree(root, stage)
		return errors.Join(fmt.Errorf("cannot change files: %w", err), undone)
	}
	return nil
}

// Recover undoes edits that were cut short, and returns the paths that it put
// back. Without any there is nothing to do.
func Recover(root, stage string) (restored []string, err error) {
	if restored, err = recoverTree(root, stage); err != nil {
		return restored, fmt.Errorf("cannot put back what an earlier run has changed by half: %w", err)
	}
	return restored, nil
}

// plan is what the journal says: how to undo the edits.
type plan struct {
	Version int      `json:"version"`
	Place   string   `json:"place"` // the stage that it was written in
	Steps   []step   `json:"steps"`
	Made    []string `json:"made"` // directories that are not there yet, in the order of making
}

// step is one edit. The file N of the stage that begins with "new" is what will
// stand at Path, the one that begins with "old" what stood there.
type step struct {
	Path   string `json:"path"`
	Was    bool   `json:"was"` // a file stood there
	Delete bool   `json:"delete"`
}

const (
	journal = "journal.json"
	version = 1
)

func newName(i int) string { return "new" + strconv.Itoa(i) }
func oldName(i int) string { return "old" + strconv.Itoa(i) }

// tree is a directory that is being edited.
type tree struct {
	root, stage string
	at          *os.File // the stage
	dirs        dirs
}

func open(root, stage string) (*tree, error) {
	t := &tree{root: root, stage: filepath.Join(root, stage)}
	if err := os.Mkdir(t.stage, 0o700); err != nil {
		return nil, err
	}
	var err error
	if t.dirs, err = openDirs(root); err != nil {
		return nil, err
	}
	if t.at, err = t.dirs.take(stage); err != nil {
		t.dirs.close()
	}
	return t, err
}

func (t *tree) close() {
	t.dirs.close()
	t.at.Close()
}

// prepare finds out what the edits need, and keeps in the stage what undoing
// them needs. The journal goes to the disk before the new contents are written,
// or a full cache of them would have to go with it; the tree is untouched until
// all of that is done.
func (t *tree) prepare(edits []Edit) (*plan, error) {
	p := &plan{Version: version}
	var err error
	if p.Place, err = place(t.at); err != nil {
		return nil, err
	}
	planned := map[string]bool{}
	stats := make([]unix.Stat_t, len(edits))
	for i, e := range edits {
		s, err := t.keep(i, e, p, planned, &stats[i])
		if err != nil {
			return nil, fmt.Errorf("%q: %w", e.Path, err)
		}
		p.Steps = append(p.Steps, s)
	}
	if err := t.save(p); err != nil {
		return nil, err
	}
	for i, e := range edits {
		if e.Delete {
			continue
		}
		mode := uint32(0o666)
		if p.Steps[i].Was {
			mode = stats[i].Mode & 0o777
		}
		if err := t.write(newName(i), e.Content, mode, p.Steps[i].Was, stats[i]); err != nil {
			return nil, fmt.Errorf("%q: %w", e.Path, err)
		}
	}
	return p, failpoint.Err("treeedit.staged")
}

// keep prepares one edit, but for the new content.
func (t *tree) keep(i int, e Edit, p *plan, planned map[string]bool, st *unix.Stat_t) (step, error) {
	s := step{Path: e.Path, Delete: e.Delete}
	dir, base := path.Dir(e.Path), path.Base(e.Path)
	missing, err := t.missing(dir)
	if err != nil {
		return s, err
	}
	for _, m := range missing {
		if !planned[m] {
			planned[m] = true
			p.Made = append(p.Made, m)
		}
	}
	if len(missing) == 0 {
		*st, s.Was, err = t.keepOld(i, dir, base)
	}
	if err == nil && e.Delete && !s.Was {
		err = fmt.Errorf("%w: there is no such file to delete", ErrInTheWay)
	}
	return s, err
}

// missing lists the directories that have to be made for dir, the highest first.
func (t *tree) missing(dir string) ([]string, error) {
	var list []string
	for ; dir != "."; dir = path.Dir(dir) {
		_, err := t.dirs.get(dir)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.ENOENT) {
			return nil, err
		}
		list = append([]string{dir}, list...)
	}
	return list, nil
}

// keepOld gives what stands at a path a second name in the stage.
func (t *tree) keepOld(i int, dir, base string) (st unix.Stat_t, was bool, err error) {
	at, err := t.dirs.get(dir)
	if err != nil {
		return st, false, err
	}
	err = unix.Fstatat(int(at.Fd()), base, &st, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case errors.Is(err, unix.ENOENT):
		return st, false, nil
	case err != nil:
		return st, false, err
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return st, false, fmt.Errorf("%w: it is not a regular file", ErrInTheWay)
	}
	if err := unix.Linkat(int(at.Fd()), base, int(t.at.Fd()), oldName(i), 0); err == nil {
		return st, true, nil
	}
	return st, true, t.copyOld(i, path.Join(dir, base), st) // of a file that cannot have a second name
}

// copyOld keeps the content of a file.
func (t *tree) copyOld(i int, name string, st unix.Stat_t) error {
	const most = 1 << 30
	data, err := hostfs.Read(t.root, name, most)
	if err != nil {
		return err
	}
	return t.write(oldName(i), string(data), st.Mode&0o777, true, st)
}

// write makes a file in the stage; one that takes another's place gets exactly
// its mode and, as far as that is allowed, its owner.
func (t *tree) write(name, content string, mode uint32, exact bool, st unix.Stat_t) error {
	fd, err := unix.Openat(int(t.at.Fd()), name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, mode)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	_, err = f.WriteString(content)
	if exact && err == nil {
		if int(st.Uid) != os.Geteuid() {
			f.Chown(int(st.Uid), int(st.Gid)) // only root can, and only root has to
		}
		err = unix.Fchmod(fd, mode)
	}
	return errors.Join(err, f.Close())
}

// perform makes the edits, one system call each. Removing the journal is what
// makes them hold.
func (t *tree) perform(p *plan) error {
	for _, dir := range p.Made {
		if err := t.dirs.make(dir); err != nil {
			return fmt.Errorf("%q: %w", dir, err)
		}
		failpoint.Here("treeedit.dir")
	}
	for i, s := range p.Steps {
		if err := t.step(i, s); err != nil {
			return fmt.Errorf("%q: %w", s.Path, err)
		}
	}
	if err := unix.Unlinkat(int(t.at.Fd()), journal, 0); err != nil {
		return err
	}
	failpoint.Here("treeedit.done")
	return os.RemoveAll(t.stage)
}

func (t *tree) step(i int, s step) error {
	if err := failpoint.Err("treeedit.step"); err != nil {
		return err
	}
	at, err := t.dirs.get(path.Dir(s.Path))
	if err != nil {
		return err
	}
	if s.Delete {
		return unix.Unlinkat(int(at.Fd()), path.Base(s.Path), 0)
	}
	return unix.Renameat(int(t.at.Fd()), newName(i), int(at.Fd()), path.Base(s.Path))
}

// save writes the journal so that a power cut leaves it before any step of it
// was made, and with it the old files' second names, which are older. Its own
// name needs no synchronisation: file systems keep the order of names.
func (t *tree) save(p *plan) error {
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}
	name := filepath.Join(t.stage, journal)
	f, err := os.OpenFile(name+".new", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}
