package hostfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// CopyInto copies the files, directories and links in from to dir, with their modes and times, and
// makes uid and gid their owner. It skips paths that exist in dir. It follows no link out of either
// directory.
func CopyInto(dir, from string, uid, gid int) error {
	source, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer target.Close()
	err = fs.WalkDir(source.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		err = copyEntry(target, source, name, e)
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		if err == nil && os.Geteuid() == 0 {
			err = target.Lchown(name, uid, gid)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot copy to %q: %w", dir, err)
	}
	return nil
}

// copyEntry copies a file or a link, or creates a directory.
func copyEntry(target, source *os.Root, name string, e fs.DirEntry) error {
	info, err := e.Info()
	if err != nil {
		return err
	}
	switch info.Mode().Type() {
	case fs.ModeDir:
		return target.Mkdir(name, info.Mode().Perm()|0o700)
	case fs.ModeSymlink:
		to, err := source.Readlink(name)
		if err != nil {
			return err
		}
		return target.Symlink(to, name)
	}
	in, err := source.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := target.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close(), target.Chmod(name, info.Mode().Perm()),
		target.Chtimes(name, info.ModTime(), info.ModTime()))
}
