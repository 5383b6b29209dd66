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
	"strings"
	"syscall"

	"abl/internal/hostfs"
	"abl/internal/testing/failpoint"
	"abl/internal/wording"
	"abl/roles/environment"
)

// ErrInTheWay means that the tree changed since the edits were checked.
var ErrInTheWay error = &environment.Error{
	Class: environment.Person, Err: errors.New("another program changed the project"),
	Do: "abl changed no file; look at git status, then run the same command again",
}

// backup describes how to undo edits. It is stored in the stage, a folder of the project, while the
// tree is between the old and the new state. In the stage, new and a file's number is its new
// content, old and its number is its old content.
type backup struct {
	Place string   `json:"place"` // the stage for which it was written
	Files []string `json:"files"`
	New   []bool   `json:"new"` // the file did not exist
}

const backupFile = "journal.json"

func staged(stage, what string, i int) string { return path.Join(stage, what+strconv.Itoa(i)) }

// Apply makes all of the edits or none. The stage must not exist. The caller holds a lock and has
// called Recover.
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
	err = b.prepare(t, stage, edits)
	if err == nil {
		err = b.perform(t, stage, edits)
	}
	if err == nil {
		return t.RemoveAll(stage)
	}
	_, undone := Recover(root, stage)
	return errors.Join(fmt.Errorf("cannot change files: %w", err), undone)
}

// prepare fills the stage. It does not change the tree.
func (b *backup) prepare(t *os.Root, stage string, edits []Edit) error {
	for i, e := range edits {
		was, err := look(t, e.Path)
		if err != nil {
			return err
		}
		b.Files, b.New = append(b.Files, e.Path), append(b.New, was == nil)
		if e.Delete {
			if was == nil {
				return inTheWay(e.Path)
			}
			continue
		}
		content := e.Content
		if was != nil {
			if content, err = withOldForm(t, e); err != nil {
				return err
			}
		}
		if err := stageFile(t, staged(stage, "new", i), content, was); err != nil {
			return err
		}
	}
	data, _ := json.Marshal(b) // cannot fail for texts
	err := hostfs.Write(filepath.Join(t.Name(), stage, backupFile), data, logPerm)
	return errors.Join(err, failpoint.Err("treeedit.staged"))
}

// withOldForm returns the content of an edit with the byte order mark and the line ends of the old
// file: CRLF if most of its lines end so.
func withOldForm(t *os.Root, e Edit) (string, error) {
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

// stageFile writes the new content of a file. It keeps the mode and, if permitted, the owner of the
// old file. A new file that begins with #! becomes executable.
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
		// Only root can change the owner, and only root needs to.
		_ = f.Chown(int(st.Uid), int(st.Gid))
		err = errors.Join(err, f.Chmod(was.Mode().Perm()))
	}
	return errors.Join(err, f.Sync(), f.Close()) // the old content is removed soon
}

// perform makes the edits. Removing the backup file makes them final.
func (b *backup) perform(t *os.Root, stage string, edits []Edit) error {
	for i, e := range edits {
		was, err := look(t, e.Path)
		if err != nil {
			return err
		}
		if (was == nil) != b.New[i] {
			return inTheWay(e.Path)
		}
		if err := errors.Join(t.MkdirAll(path.Dir(e.Path), 0o777), failpoint.Err("treeedit.step")); err != nil {
			return err
		}
		if was != nil {
			if err := t.Rename(e.Path, staged(stage, "old", i)); err != nil {
				return err
			}
		}
		failpoint.Here("treeedit.kept")
		if e.Delete {
			continue
		}
		if err := move(t, e.Path, staged(stage, "new", i), e.Path); err != nil {
			return err
		}
	}
	err := t.Remove(path.Join(stage, backupFile))
	failpoint.Here("treeedit.done")
	return err
}

// Recover undoes interrupted edits and returns the restored paths. It can be interrupted itself and
// called again. It does not touch files whose edit had not begun.
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
		// The edit had not begun.
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
		return restored, fmt.Errorf("cannot undo an interrupted change of an earlier run: %w", err)
	}
	for i, file := range b.Files {
		_, inway := look(t, file) // a link may have been created there
		made := b.New[i] && inway == nil
		for dir := path.Dir(file); made && dir != "." && t.Remove(dir) == nil; {
			dir = path.Dir(dir) // up to the first folder that is not empty
		}
	}
	return restored, errors.Join(hostfs.Remove(root, path.Join(stage, backupFile)), hostfs.Remove(root, stage))
}

func there(t *os.Root, name string) bool {
	_, err := t.Lstat(name)
	return err == nil
}

// look returns the file at the path of an edit, nil if it does not exist. It fails if a part of the
// path is not a folder, because a link would lead to another file.
func look(t *os.Root, file string) (fs.FileInfo, error) {
	at, why, err := fileAt(t.Name(), file)
	if why != "" {
		err = inTheWay(file)
	}
	return at, err
}

// move renames a file from or to the path of an edit.
func move(t *os.Root, file, from, to string) error {
	if _, err := look(t, file); err != nil {
		return err
	}
	return t.Rename(from, to)
}

func inTheWay(file string) error { return fmt.Errorf("%q: %w", file, ErrInTheWay) }

// readBackup reads the backup file, which is missing if nothing or everything was changed. It
// refuses a file that abl did not write here: it may come from a repository with hostile content.
func readBackup(t *os.Root, stage string) (b backup, err error) {
	data, err := hostfs.Read(t.Name(), path.Join(stage, backupFile), mostText)
	if errors.Is(err, hostfs.ErrAbsent) {
		return b, nil
	}
	if err != nil {
		return b, err
	}
	foreign := func(file string) bool { return !filepath.IsLocal(file) }
	_ = json.Unmarshal(data, &b) // the comparison below detects errors
	wrong := b.Place != place(t, stage) || len(b.New) != len(b.Files) || slices.ContainsFunc(b.Files, foreign)
	if again, _ := json.Marshal(b); wrong || !bytes.Equal(data, again) {
		return backup{}, fmt.Errorf("%s was not written here: check the content of %s, and remove it",
			path.Join(stage, backupFile), stage)
	}
	return b, nil
}

// place returns an id that distinguishes a folder from others and from its copies.
func place(t *os.Root, dir string) string {
	info, err := t.Lstat(dir)
	if err != nil {
		return err.Error()
	}
	st := info.Sys().(*syscall.Stat_t)
	return fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}
