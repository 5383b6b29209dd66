package codecommit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"abl/internal/hostfs"
	"abl/internal/testing/failpoint"
	"abl/internal/wording"
	"abl/roles/environment"
)

// ErrInTheWay means that the tree is not, or no longer, as the edits need it: what
// stands at a path, or on the way to it, is something else.
var ErrInTheWay error = &environment.Error{
	Class: environment.Person, Err: errors.New("somebody else has changed it meanwhile"),
	Do: "no file was changed; look at git status, then run the same command again",
}

// backup says how to go back, and is in the stage, a folder of the project, while the
// tree is between the old and the new state. There, new and a file's number are what
// will stand in its place, old and the number what stood there.
type backup struct {
	Place string   `json:"place"` // the stage that it was written in
	Files []string `json:"files"`
	New   []bool   `json:"new"` // nothing stood there
}

const backupFile = "journal.json"

func staged(stage, what string, i int) string { return path.Join(stage, what+strconv.Itoa(i)) }

// Apply makes the edits, all of them or none. The stage must not exist yet. The caller
// holds a lock and has called Recover.
func Apply(root, stage string, edits []Edit) error {
	t, err := os.OpenRoot(root)
	if err == nil {
		defer t.Close()
		err = t.Mkdir(stage, 0o700)
	}
	if err != nil {
		return fmt.Errorf("cannot change files: %w", err)
	}
	b := backup{Place: place(t, stage)}
	if err = b.prepare(t, stage, edits); err == nil {
		err = b.perform(t, stage, edits)
	}
	if err == nil {
		return t.RemoveAll(stage)
	}
	_, undone := Recover(root, stage)
	return errors.Join(fmt.Errorf("cannot change files: %w", err), undone)
}

// prepare fills the stage. The tree is untouched until all of it is on the disk.
func (b *backup) prepare(t *os.Root, stage string, edits []Edit) error {
	for i, e := range edits {
		was, err := look(t, e.Path)
		if was == nil && e.Delete {
			err = cmp.Or(err, inTheWay(e.Path))
		}
		b.Files, b.New = append(b.Files, e.Path), append(b.New, was == nil)
		content := e.Content
		if err == nil && !e.Delete && was != nil {
			content, err = likeBefore(t, e)
		}
		if err == nil && !e.Delete {
			err = stageFile(t, staged(stage, "new", i), content, was)
		}
		if err != nil {
			return err
		}
	}
	data, _ := json.Marshal(b) // texts cannot fail
	err := hostfs.Write(filepath.Join(t.Name(), stage, backupFile), data, logPerm)
	return errors.Join(err, failpoint.Err("treeedit.staged"))
}

// likeBefore is the content of an edit with the byte order mark and the line ends of the file whose
// place it takes: CRLF if most of its lines end so.
func likeBefore(t *os.Root, e Edit) (string, error) {
	const bom = "\ufeff"
	old, err := hostfs.Read(t.Name(), e.Path, mostText)
	content := e.Content
	if bytes.Count(old, []byte("\r\n"))*2 > bytes.Count(old, []byte("\n")) {
		content = strings.ReplaceAll(wording.Unix(content), "\n", "\r\n")
	}
	if bytes.HasPrefix(old, []byte(bom)) && !strings.HasPrefix(content, bom) {
		content = bom + content
	}
	return content, err
}

// stageFile writes a new content, with the mode and, where that is allowed, the owner
// of the file whose place it takes, if any. A new file that begins with #! can be executed.
func stageFile(t *os.Root, name, content string, was fs.FileInfo) error {
	perm := fs.FileMode(0o666)
	if was == nil && strings.HasPrefix(content, "#!") {
		perm = 0o777
	}
	f, err := t.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	if was != nil {
		st := was.Sys().(*syscall.Stat_t)
		// Another's only root can give away, and only root has to.
		_ = f.Chown(int(st.Uid), int(st.Gid))
		err = errors.Join(err, f.Chmod(was.Mode().Perm()))
	}
	return errors.Join(err, f.Sync(), f.Close()) // what it replaces is removed soon
}

// perform makes the edits. Removing the backup's file is what makes them hold.
func (b *backup) perform(t *os.Root, stage string, edits []Edit) error {
	for i, e := range edits {
		was, err := look(t, e.Path)
		if (was == nil) != b.New[i] {
			err = cmp.Or(err, inTheWay(e.Path))
		}
		if err == nil {
			err = errors.Join(t.MkdirAll(path.Dir(e.Path), 0o777), failpoint.Err("treeedit.step"))
		}
		if err == nil && was != nil {
			err = t.Rename(e.Path, staged(stage, "old", i))
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
// It can be cut short itself and called again. What stands at the path of an edit that
// was not begun is not touched.
func Recover(root, stage string) (restored []string, err error) {
	t, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	b, err := readBackup(t, stage)
	for i, file := range slices.Backward(b.Files) {
		next := staged(stage, "new", i)
		from, to := staged(stage, "old", i), file
		if b.New[i] {
			from, to = file, next
		}
		// What stands there is not the edit's.
		if !there(t, from) || there(t, file) && there(t, next) {
			continue
		}
		if err = move(t, file, from, to); err != nil {
			break
		}
		restored = append(restored, file)
		failpoint.Here("treeedit.undo")
	}
	if err != nil {
		return restored, fmt.Errorf("cannot put back what an earlier run has changed by half: %w", err)
	}
	for i, file := range b.Files {
		_, inway := look(t, file) // somebody may have put a link there
		made := b.New[i] && inway == nil
		for dir := path.Dir(file); made && dir != "." && t.Remove(dir) == nil; {
			dir = path.Dir(dir) // up to one that holds something
		}
	}
	return restored, errors.Join(hostfs.Remove(root, path.Join(stage, backupFile)), hostfs.Remove(root, stage))
}

func there(t *os.Root, name string) bool {
	_, err := t.Lstat(name)
	return err == nil
}

// look is what stands at the path of an edit, if anything. Something else than folders on
// the way is refused: a link there would lead to another file.
func look(t *os.Root, file string) (fs.FileInfo, error) {
	at, why, err := stands(t.Name(), file)
	if why != "" {
		err = inTheWay(file)
	}
	return at, err
}

// move renames to or from the path of an edit.
func move(t *os.Root, file, from, to string) error {
	if _, err := look(t, file); err != nil {
		return err
	}
	return t.Rename(from, to)
}

func inTheWay(file string) error { return fmt.Errorf("%q: %w", file, ErrInTheWay) }

// readBackup refuses what was not written here: it may have come with the tree, from
// somebody who would like to have files moved. Without any, nothing was changed yet,
// or all of it.
func readBackup(t *os.Root, stage string) (b backup, err error) {
	data, err := hostfs.Read(t.Name(), path.Join(stage, backupFile), mostText)
	if errors.Is(err, hostfs.ErrAbsent) {
		return b, nil
	}
	if err != nil {
		return b, err
	}
	foreign := func(file string) bool { return !filepath.IsLocal(file) }
	_ = json.Unmarshal(data, &b) // what is not as it was written is seen below
	wrong := b.Place != place(t, stage) || len(b.New) != len(b.Files) || slices.ContainsFunc(b.Files, foreign)
	if again, _ := json.Marshal(b); wrong || !bytes.Equal(data, again) {
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
