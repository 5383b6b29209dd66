package hostfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// tempMark is in the name of every temporary file, and in no other's.
const tempMark = ".abl-tmp-"

// Write replaces the file at path by one with this content and exactly this
// mode. A link at path is replaced, not followed. When Write returns without
// an error, the content survives a power cut.
func Write(path string, data []byte, perm os.FileMode) error {
	return Fill(path, perm, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// Fill is Write for content of any length, which fill writes.
func Fill(path string, perm os.FileMode, fill func(io.Writer) error) error {
	if err := writeWhole(path, perm, fill); err != nil {
		return fmt.Errorf("cannot write %q: %w", path, err)
	}
	return nil
}

func writeWhole(path string, perm os.FileMode, content func(io.Writer) error) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, tempPrefix(path)+"*")
	if err != nil {
		return err
	}
	if err = f.Chmod(perm); err == nil { // what Create gave is subject to the umask
		err = content(f)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return SyncDir(dir)
}

// tempPrefix hides the file, and keeps its name within what a folder allows.
func tempPrefix(path string) string {
	const longest = 100
	base := filepath.Base(path)
	return "." + base[:min(len(base), longest)] + tempMark
}

// SyncDir makes what was created, renamed or removed in dir survive a power
// cut.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// SweepTemps removes from dir the temporary files that a killed Write left. The
// caller holds the lock under which dir is written. A missing dir has none.
func SweepTemps(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot sweep temporary files: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if e.Type().IsRegular() && strings.HasPrefix(e.Name(), ".") && strings.Contains(e.Name(), tempMark) {
			errs = append(errs, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("cannot sweep temporary files: %w", err)
	}
	return nil
}
