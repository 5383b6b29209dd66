package codecommit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"abl/internal/hostfs"
	"abl/internal/testing/failpoint"
)

// ErrInTheWay means that the tree is not, or no longer, as the edits need it: what
// stands at a path, or on the way to it, is something else.
var ErrInTheWay = errors.New("somebody else has changed it meanwhile")

// backup is in the stage while the tree is between the old and the new state. File N
// of the stage that begins with "new" is what will stand at Files[N], the one that
// begins with "old" what stood there.
type backup struct {
	Place string   `json:"place"` // the stage that it was written in
	Dirs  []string `json:"dirs"`  // that are not there yet, the highest first
	Files []string `json:"files"`
}

const backupFile = "journal.json"

func staged(stage, what string, i int) string { return path.Join(stage, what+strconv.Itoa(i)) }

// Apply makes the edits, all of them or none. The stage, a folder below root that
// must not exist yet, takes the new contents; then what stands at each path is moved
// into the stage, and the new content to the path. The caller holds a lock and has called
// Recover.
func Apply(root, stage string, edits []Edit) error {
	t, err := os.OpenRoot(root)
	if err != nil {
		return fmt.Errorf("cannot change files: %w", err)
	}
	defer t.Close()
	if err := t.Mkdir(stage, 0o700); err != nil {
		return fmt.Errorf("cannot change files: %w", err)
	}
	b := backup{Place: place(t, stage)}
	err = errors.Join(b.prepare(t, stage, edits), failpoint.Err("treeedit.staged"))
	if err == nil {
		err = b.perform(t, stage, edits)
	}
	if err != nil {
		_, undone := Recover(root, stage)
		return errors.Join(fmt.Errorf("cannot change files: %w", err), undone)
	}
	return t.RemoveAll(stage)
}

// prepare fills the stage. The tree is untouched until all of it is on the disk.
func (b *backup) prepare(t *os.Root, stage string, edits []Edit) error {
	for i, e := range edits {
		for j, c := range e.Path {
			if c != '/' || slices.Contains(b.Dirs, e.Path[:j]) {
				continue
			}
			if info, err := t.Lstat(e.Path[:j]); err != nil {
				b.Dirs = append(b.Dirs, e.Path[:j])
			} else if !info.IsDir() {
				return fmt.Errorf("%q: %w", e.Path[:j], ErrInTheWay)
			}
		}
		b.Files = append(b.Files, e.Path)
		if err := stageFile(t, staged(stage, "new", i), e); err != nil {
			return err
		}
	}
	data, err := json.Marshal(b)
	if err != nil {
		return err
	}
	return hostfs.Write(filepath.Join(t.Name(), stage, backupFile), data, logPerm)
}

// stageFile writes a new content, with the mode and, where that is allowed, the owner
// of the file whose place it takes.
func stageFile(t *os.Root, name string, e Edit) error {
	was, problem := t.Lstat(e.Path)
	if problem == nil && !was.Mode().IsRegular() || problem != nil && e.Delete {
		return fmt.Errorf("%q: %w", e.Path, ErrInTheWay)
	}
	f, err := t.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.WriteString(e.Content)
	if problem == nil && err == nil {
		if st, ok := was.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
			_ = f.Chown(int(st.Uid), int(st.Gid)) // only root can, and only root has to
		}
		err = f.Chmod(was.Mode().Perm())
	}
	if err == nil && !e.Delete {
		err = f.Sync() // what it replaces is removed soon
	}
	return errors.Join(err, f.Close())
}

// perform makes the edits. Removing the backup's file is what makes them hold.
func (b *backup) perform(t *os.Root, stage string, edits []Edit) error {
	for _, dir := range b.Dirs {
		if err := t.Mkdir(dir, 0o777); err != nil {
			return err
		}
		failpoint.Here("treeedit.dir")
	}
	for i, e := range edits {
		err := failpoint.Err("treeedit.step")
		if err == nil {
			err = move(t, e.Path, e.Path, staged(stage, "old", i))
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = nil // nothing stood there
		}
		failpoint.Here("treeedit.kept")
		if err == nil && !e.Delete {
			err = move(t, e.Path, staged(stage, "new", i), e.Path)
		}
		if err != nil {
			return err
		}
	}
	err := t.Remove(path.Join(stage, backupFile))
	failpoint.Here("treeedit.done")
	return err
}

// Recover undoes edits that were cut short, and returns the paths that it put back.
// It can be cut short itself and called again.
func Recover(root, stage string) (restored []string, err error) {
	t, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	b, err := readBackup(t, stage)
	for i := len(b.Files) - 1; i >= 0 && err == nil; i-- {
		var done bool
		if done, err = undo(t, b.Files[i], staged(stage, "new", i), staged(stage, "old", i)); done {
			restored = append(restored, b.Files[i])
		}
		failpoint.Here("treeedit.undo")
	}
	if err != nil {
		return restored, fmt.Errorf("cannot put back what an earlier run has changed by half: %w", err)
	}
	for _, dir := range slices.Backward(b.Dirs) {
		_ = t.Remove(dir) // one that a person put something into stays
	}
	failpoint.Here("treeedit.undone")
	return restored, errors.Join(hostfs.Remove(root, path.Join(stage, backupFile)), hostfs.Remove(root, stage))
}

// undo moves one file's new and old content back where they were. What stands at the
// path of an edit that was not begun is not touched.
func undo(t *os.Root, file, next, old string) (done bool, err error) {
	for _, way := range [][2]string{{file, next}, {old, file}} {
		if _, err := t.Lstat(way[1]); err == nil {
			continue
		}
		if _, err := t.Lstat(way[0]); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := move(t, file, way[0], way[1]); err != nil {
			return done, err
		}
		done = true
	}
	return done, nil
}

// move renames to or from the path of an edit, unless a folder on the way to that is
// none any more: a link there would lead to another file.
func move(t *os.Root, file, from, to string) error {
	for i, c := range file {
		if c != '/' {
			continue
		}
		if info, err := t.Lstat(file[:i]); err != nil || !info.IsDir() {
			return fmt.Errorf("%q: %w", file[:i], ErrInTheWay)
		}
	}
	return t.Rename(from, to)
}

// readBackup refuses what was not written here: it may have come with the tree, from
// somebody who would like to have files moved. Without any, nothing was changed yet,
// or all of it.
func readBackup(t *os.Root, stage string) (b backup, err error) {
	const most = 1 << 30
	data, err := hostfs.Read(t.Name(), path.Join(stage, backupFile), most)
	if err != nil {
		if errors.Is(err, hostfs.ErrAbsent) {
			err = nil
		}
		return b, err
	}
	foreign := func(name string) bool { return !filepath.IsLocal(name) || path.Clean(name) != name }
	problem := json.Unmarshal(data, &b)
	if again, _ := json.Marshal(b); problem != nil || !bytes.Equal(data, again) || b.Place != place(t, stage) || slices.ContainsFunc(slices.Concat(b.Dirs, b.Files), foreign) {
		return backup{}, fmt.Errorf("%s was not written here: look what is in %s, and remove it", path.Join(stage, backupFile), stage)
	}
	return b, nil
}

// place tells a folder from every other one, and from a copy of it.
func place(t *os.Root, dir string) string {
	info, err := t.Lstat(dir)
	if err != nil {
		return err.Error()
	}
	st := info.Sys().(*syscall.Stat_t)
	return fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}
